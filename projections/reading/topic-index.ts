import { BEGINNING, type EventStore, type Position } from '../../domain/event-store.ts';
import { idOf } from '../../domain/streams.ts';
import { TopicListeners, type ListenedPage } from './topic-listeners.ts';
import { loadView } from './load-view.ts';
import type { ReadModel } from '../read-model.ts';
import { topicsProjection } from '../views/topics.ts';

/**
 * The tasks that a topic triggers, in memory: the view of topics, loaded once and followed live. So a publication needs
 * no lookup.
 */
export class TopicIndex {
  readonly #store: EventStore;
  readonly #readModel: ReadModel;
  #listeners = new TopicListeners();
  #reached: Position = BEGINNING;
  /** Whether the index has been level with the log. Before that it knows no listeners. */
  #level = false;
  #waiting: { readonly position: Position; readonly resolve: () => void }[] = [];

  constructor(store: EventStore, readModel: ReadModel) {
    this.#store = store;
    this.#readModel = readModel;
  }

  /** Loads the view, then follows the log until the signal is aborted. */
  async follow(signal: AbortSignal, ready: () => void): Promise<void> {
    // Until the new one is level, publications use the old one. After an interruption the old one may hold tasks that
    // were canceled meanwhile.
    const fresh = new TopicListeners();
    const after = await loadView(
      { store: this.#store, readModel: this.#readModel },
      topicsProjection,
      [],
      (document, taskId) => fresh.set(taskId, document, document.revision),
    );
    let caughtUp = false;
    const prefixes = topicsProjection.streams;
    for await (const message of this.#store.subscribe({ after, prefixes, signal })) {
      if (message.kind === 'events') {
        for (const event of message.events) {
          if (event.fault !== undefined) continue;
          const taskId = idOf(event.stream);
          const known = fresh.get(taskId);
          if (known && event.revision <= known.revision) continue;
          const document = topicsProjection.evolve(known?.document ?? null, event, taskId);
          fresh.set(taskId, document, event.revision);
        }
        if (caughtUp) this.#reach(message.events.at(-1)?.position ?? this.#reached);
      } else {
        this.#listeners = fresh;
        this.#level = true;
        this.#reach(message.position);
        if (!caughtUp) ready();
        caughtUp = true;
      }
    }
  }

  /** Sorted ids of the active event tasks whose pattern matches. */
  matching(topic: string): readonly string[] {
    return this.#listeners.matching(topic);
  }

  /**
   * A page of the patterns that active event tasks listen to, with the index's position: see {@link TopicListeners.page}.
   */
  page(
    ...asked: Parameters<TopicListeners['page']>
  ): ListenedPage & { readonly position: Position } {
    return { ...this.#listeners.page(...asked), position: this.#reached };
  }

  /**
   * Resolves once the index is loaded and has passed a position. Never times out: rejects with the signal's reason when
   * that is aborted.
   */
  passed(position: Position, signal: AbortSignal): Promise<void> {
    if (this.#level && position <= this.#reached) return Promise.resolve();
    if (signal.aborted) return Promise.reject(signal.reason as Error);
    return new Promise((resolve, reject) => {
      const giveUp = (): void => {
        this.#waiting = this.#waiting.filter((each) => each !== waiter);
        reject(signal.reason as Error);
      };
      const waiter = {
        position,
        resolve: () => {
          signal.removeEventListener('abort', giveUp);
          resolve();
        },
      };
      signal.addEventListener('abort', giveUp, { once: true });
      this.#waiting.push(waiter);
    });
  }

  #reach(position: Position): void {
    if (position > this.#reached) this.#reached = position;
    if (this.#waiting.length === 0) return;
    const reached = this.#reached;
    const passed = this.#waiting.filter((waiter) => waiter.position <= reached);
    this.#waiting = this.#waiting.filter((waiter) => waiter.position > reached);
    for (const { resolve } of passed) resolve();
  }
}
