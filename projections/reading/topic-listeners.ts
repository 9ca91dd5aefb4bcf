import { namespaceOf } from '../../domain/namespaces/namespace.ts';
import { compileTopicPattern, type TopicPattern } from '../../domain/schedule/topic-pattern.ts';
import { EVERY_NAMESPACE, type Reach } from '../reach.ts';
import { SortedStrings } from './sorted-strings.ts';
import type { TopicDocument } from '../views/topics.ts';

export interface ListenedTopic {
  readonly topic: string;
  readonly active_tasks: number;
  /** Sorted; only the first ones if there are very many. */
  readonly task_ids: readonly string[];
}

/** A page of the patterns that tasks listen to, sorted. */
export interface ListenedPage {
  readonly total: number;
  readonly topics: readonly ListenedTopic[];
  readonly hasMore: boolean;
}

interface KnownTask {
  readonly document: TopicDocument;
  /** The position of the last event that the index has taken. */
  readonly revision: number;
}

interface Listened {
  readonly pattern: TopicPattern;
  readonly tasks: SortedStrings;
}

/** Tasks in memory by the patterns that they listen to, separately for each namespace. */
export class TopicListeners {
  /** Includes tasks of other kinds: they may become event tasks. */
  readonly #tasks = new Map<string, KnownTask>();
  readonly #namespaces = new Map<string, NamespaceListeners>();

  /** A task; undefined if it is unknown or canceled. */
  get(taskId: string): KnownTask | undefined {
    return this.#tasks.get(taskId);
  }

  /** @param document null for a canceled task */
  set(taskId: string, document: TopicDocument | null, revision: number): void {
    const known = this.#tasks.get(taskId)?.document;
    const before = patternOf(known);
    const now = patternOf(document);
    if (document === null) this.#tasks.delete(taskId);
    else this.#tasks.set(taskId, { document, revision });
    if (before === now) return;
    const task = document ?? known;
    if (task === undefined) return;
    const namespace = namespaceOf(task);
    const listeners = this.#namespaces.get(namespace) ?? new NamespaceListeners();
    this.#namespaces.set(namespace, listeners);
    if (before !== null) listeners.leave(before, taskId);
    if (now !== null) listeners.join(now, taskId);
    if (listeners.size === 0) this.#namespaces.delete(namespace);
  }

  /**
   * Sorted ids of the tasks of a namespace whose pattern matches.
   * @param isStopped whether nothing may start for an agent. Default: never
   */
  matching(
    namespace: string,
    topic: string,
    isStopped: (owner: string) => boolean = () => false,
  ): readonly string[] {
    const ids = this.#namespaces.get(namespace)?.matching(topic) ?? [];
    return ids.filter((id) => {
      const owner = this.#tasks.get(id)?.document.created_by;
      return owner === undefined || !isStopped(owner);
    });
  }

  /**
   * A page of patterns with their tasks. A pattern in several namespaces has the tasks of all those in reach.
   * @param wanted.matching only patterns that this topic matches; undefined: all
   * @param wanted.after patterns after it; null: from the first
   * @param wanted.offset how many of them to leave out
   * @param maxIds the most ids per pattern
   */
  page(
    reach: Reach,
    wanted: {
      readonly matching?: string | undefined;
      readonly after: string | null;
      readonly offset: number;
      readonly limit: number;
    },
    maxIds: number,
  ): ListenedPage {
    const { matching, after, offset, limit } = wanted;
    const asked = reach === EVERY_NAMESPACE ? [...this.#namespaces.values()] : this.#of(reach);
    const [first, ...rest] = asked;
    if (first === undefined) return { total: 0, topics: [], hasMore: false };
    const patterns =
      rest.length === 0 && matching === undefined
        ? first.patterns
        : unionOf(asked.map((each) => each.patternsFor(matching)));
    const found = patterns.page(after, offset, limit + 1);
    const topics = found.slice(0, limit).map((topic): ListenedTopic => {
      const listened = asked.map((each) => each.tasksOf(topic)).filter((each) => each !== null);
      const [only, ...others] = listened;
      const tasks = only === undefined || others.length > 0 ? unionOf(listened) : only;
      return { topic, active_tasks: tasks.size, task_ids: tasks.page(null, 0, maxIds) };
    });
    return { total: patterns.size, topics, hasMore: found.length > limit };
  }

  #of(namespace: string): readonly NamespaceListeners[] {
    const listeners = this.#namespaces.get(namespace);
    return listeners === undefined ? [] : [listeners];
  }
}

/** The listeners of one namespace. */
class NamespaceListeners {
  readonly #listened = new Map<string, Listened>();
  readonly patterns = new SortedStrings();

  /** The number of patterns that have tasks. */
  get size(): number {
    return this.#listened.size;
  }

  tasksOf(pattern: string): SortedStrings | null {
    return this.#listened.get(pattern)?.tasks ?? null;
  }

  /** All patterns, or those that a topic matches. */
  patternsFor(topic: string | undefined): SortedStrings {
    if (topic === undefined) return this.patterns;
    const found = new SortedStrings();
    for (const [text, { pattern }] of this.#listened) if (pattern.matches(topic)) found.add(text);
    return found;
  }

  matching(topic: string): readonly string[] {
    const ids: string[] = [];
    for (const { pattern, tasks } of this.#listened.values()) {
      if (!pattern.matches(topic)) continue;
      for (const id of tasks.values()) ids.push(id);
    }
    return ids.sort();
  }

  join(pattern: string, taskId: string): void {
    let listened = this.#listened.get(pattern);
    if (listened === undefined) {
      listened = { pattern: compileTopicPattern(pattern), tasks: new SortedStrings() };
      this.#listened.set(pattern, listened);
      this.patterns.add(pattern);
    }
    listened.tasks.add(taskId);
  }

  leave(pattern: string, taskId: string): void {
    const listened = this.#listened.get(pattern);
    if (listened === undefined) return;
    listened.tasks.delete(taskId);
    if (listened.tasks.size > 0) return;
    this.#listened.delete(pattern);
    this.patterns.delete(pattern);
  }
}

function unionOf(all: readonly SortedStrings[]): SortedStrings {
  const union = new SortedStrings();
  for (const strings of all) for (const each of strings.values()) union.add(each);
  return union;
}

const patternOf = (task: TopicDocument | null | undefined): string | null =>
  task?.listening === true ? task.pattern : null;
