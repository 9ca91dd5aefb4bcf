import { compileTopicPattern, type TopicPattern } from '../../domain/schedule/topic-pattern.ts';
import { SortedStrings } from './sorted-strings.ts';
import type { TopicDocument } from '../views/topics.ts';

export interface ListenedTopic {
  readonly topic: string;
  readonly active_tasks: number;
  /** Sorted; the first of them if there are very many. */
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
  /** Of the last event that it has taken. */
  readonly revision: number;
}

interface Listened {
  readonly pattern: TopicPattern;
  readonly tasks: SortedStrings;
}

/** Tasks by the patterns they listen to, in memory. */
export class TopicListeners {
  /** Includes tasks of other kinds: they may become event tasks. */
  readonly #tasks = new Map<string, KnownTask>();
  readonly #listened = new Map<string, Listened>();
  readonly #patterns = new SortedStrings();

  /** A task; undefined if it is unknown or canceled. */
  get(taskId: string): KnownTask | undefined {
    return this.#tasks.get(taskId);
  }

  /** @param document null for a canceled task */
  set(taskId: string, document: TopicDocument | null, revision: number): void {
    const before = patternOf(this.#tasks.get(taskId)?.document);
    const now = patternOf(document);
    if (document === null) this.#tasks.delete(taskId);
    else this.#tasks.set(taskId, { document, revision });
    if (before === now) return;
    if (before !== null) this.#leave(before, taskId);
    if (now !== null) this.#join(now, taskId);
  }

  /**
   * Sorted ids of the tasks whose pattern matches.
   * @param isStopped whether nothing may begin for an agent. Default: never
   */
  matching(topic: string, isStopped: (owner: string) => boolean = () => false): readonly string[] {
    const ids: string[] = [];
    for (const { pattern, tasks } of this.#listened.values()) {
      if (!pattern.matches(topic)) continue;
      for (const id of tasks.values()) {
        const owner = this.#tasks.get(id)?.document.created_by;
        if (owner === undefined || !isStopped(owner)) ids.push(id);
      }
    }
    return ids.sort();
  }

  /**
   * @param place.after patterns after it; null: from the first
   * @param place.offset how many of them to leave out
   * @param maxIds ids per pattern
   */
  page(
    place: { readonly after: string | null; readonly offset: number; readonly limit: number },
    maxIds: number,
  ): ListenedPage {
    const { after, offset, limit } = place;
    const found = this.#patterns.page(after, offset, limit + 1);
    const topics: ListenedTopic[] = [];
    for (const topic of found.slice(0, limit)) {
      const tasks = this.#listened.get(topic)?.tasks;
      if (tasks === undefined) continue;
      const task_ids = tasks.page(null, 0, maxIds);
      topics.push({ topic, active_tasks: tasks.size, task_ids });
    }
    return { total: this.#patterns.size, topics, hasMore: found.length > limit };
  }

  #join(pattern: string, taskId: string): void {
    let listened = this.#listened.get(pattern);
    if (listened === undefined) {
      listened = { pattern: compileTopicPattern(pattern), tasks: new SortedStrings() };
      this.#listened.set(pattern, listened);
      this.#patterns.add(pattern);
    }
    listened.tasks.add(taskId);
  }

  #leave(pattern: string, taskId: string): void {
    const listened = this.#listened.get(pattern);
    if (listened === undefined) return;
    listened.tasks.delete(taskId);
    if (listened.tasks.size > 0) return;
    this.#listened.delete(pattern);
    this.#patterns.delete(pattern);
  }
}

const patternOf = (task: TopicDocument | null | undefined): string | null =>
  task?.listening === true ? task.pattern : null;
