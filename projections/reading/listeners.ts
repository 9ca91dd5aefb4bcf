import { compileTopicPattern, type TopicPattern } from '../../domain/schedule/topic-pattern.ts';
import { SortedTexts } from './sorted-texts.ts';
import type { TopicDocument } from '../views/topics.ts';

/** A pattern that active tasks listen to. */
export interface ListenedTopic {
  readonly topic: string;
  /** How many tasks listen. */
  readonly active_tasks: number;
  /** Their ids in order, the first of them where there are very many. */
  readonly task_ids: readonly string[];
}

/** A part of the patterns that are listened to, in order of their text. */
export interface ListenedPage {
  /** How many patterns there are in all. */
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
  readonly tasks: SortedTexts;
}

/** Tasks by what they listen to, in memory: what a topic triggers, and which patterns there are. */
export class Listeners {
  /** Tasks of other kinds too: they may become event tasks. */
  readonly #tasks = new Map<string, KnownTask>();
  readonly #listened = new Map<string, Listened>();
  readonly #patterns = new SortedTexts();

  /** What is known of a task; undefined for none, and for one that is canceled. */
  get(taskId: string): KnownTask | undefined {
    return this.#tasks.get(taskId);
  }

  /** @param document null for a task that is canceled */
  set(taskId: string, document: TopicDocument | null, revision: number): void {
    const before = patternOf(this.#tasks.get(taskId)?.document);
    const now = patternOf(document);
    if (document === null) this.#tasks.delete(taskId);
    else this.#tasks.set(taskId, { document, revision });
    if (before === now) return;
    if (before !== null) this.#leave(before, taskId);
    if (now !== null) this.#join(now, taskId);
  }

  /** Ids of the tasks whose pattern matches, in order. */
  matching(topic: string): readonly string[] {
    const ids: string[] = [];
    for (const { pattern, tasks } of this.#listened.values()) {
      if (!pattern.matches(topic)) continue;
      for (const id of tasks.values()) ids.push(id);
    }
    return ids.sort();
  }

  /**
   * @param place.after patterns behind it; null: from the first
   * @param place.offset how many of them are passed over
   * @param mostIds most ids of a pattern's tasks
   */
  page(
    place: { readonly after: string | null; readonly offset: number; readonly limit: number },
    mostIds: number,
  ): ListenedPage {
    const { after, offset, limit } = place;
    const found = this.#patterns.page(after, offset, limit + 1);
    const topics: ListenedTopic[] = [];
    for (const topic of found.slice(0, limit)) {
      const tasks = this.#listened.get(topic)?.tasks;
      if (tasks === undefined) continue;
      const task_ids = tasks.page(null, 0, mostIds);
      topics.push({ topic, active_tasks: tasks.size, task_ids });
    }
    return { total: this.#patterns.size, topics, hasMore: found.length > limit };
  }

  #join(pattern: string, taskId: string): void {
    let listened = this.#listened.get(pattern);
    if (listened === undefined) {
      listened = { pattern: compileTopicPattern(pattern), tasks: new SortedTexts() };
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
