import { BEGINNING, type EventStore, type Position } from '../../domain/event-store.ts';
import { idOf } from '../../domain/streams.ts';
import { Listeners, type ListenedPage } from './listeners.ts';
import { loadView } from './load-view.ts';
import type { ReadModel } from '../read-model.ts';
import { topicsProjection } from '../views/topics.ts';

/**
 * Which tasks an event triggers, in memory: the view of topics, loaded once and followed live, so that a
 * publication looks up nothing.
 */
export class TopicIndex {
  private readonly store: EventStore;
  private readonly readModel: ReadModel;
  private listeners = new Listeners();
  private reached: Position = BEGINNING;
  /** The index has been level with the log: before, it knows of nobody who listens. */
  private level = false;
  private waiting: { readonly position: Position; readonly resolve: () => void }[] = [];

  constructor(store: EventStore, readModel: ReadModel) {
    this.store = store;
    this.readModel = readModel;
  }

  /** Loads the view, then follows the log until the signal is aborted. */
  async follow(signal: AbortSignal, ready: () => void): Promise<void> {
    // Beside what is known: until it is level, a publication goes by the old one. After a break that holds tasks
    // which are neither in the view nor in what follows it, as they were canceled meanwhile.
    const fresh = new Listeners();
    const after = await loadView(
      { store: this.store, readModel: this.readModel },
      topicsProjection,
      [],
      (document, taskId) => fresh.set(taskId, document, document.revision),
    );
    let caughtUp = false;
    const prefixes = topicsProjection.streams;
    for await (const message of this.store.subscribe({ after, prefixes, signal })) {
      if (message.kind === 'events') {
        for (const event of message.events) {
          if (event.fault !== undefined) continue;
          const taskId = idOf(event.stream);
          const known = fresh.get(taskId);
          if (known && event.revision <= known.revision) continue;
          const document = topicsProjection.evolve(known?.document ?? null, event, taskId);
          fresh.set(taskId, document, event.revision);
        }
        if (caughtUp) this.reach(message.events.at(-1)?.position ?? this.reached);
      } else {
        this.listeners = fresh;
        this.level = true;
        this.reach(message.position);
        if (!caughtUp) ready();
        caughtUp = true;
      }
    }
  }

  /** Ids of the active event tasks whose pattern matches, in order of their ids. */
  matching(topic: string): readonly string[] {
    return this.listeners.matching(topic);
  }

  /** Some of the patterns that active event tasks listen to, and up to where: see {@link Listeners.page}. */
  page(...asked: Parameters<Listeners['page']>): ListenedPage & { readonly position: Position } {
    return { ...this.listeners.page(...asked), position: this.reached };
  }

  /**
   * Resolves once the index is loaded and a position is passed: what was created up to it is triggered. Does not
   * time out by itself: rejects with the signal's reason when it is aborted.
   */
  passed(position: Position, signal: AbortSignal): Promise<void> {
    if (this.level && position <= this.reached) return Promise.resolve();
    if (signal.aborted) return Promise.reject(signal.reason as Error);
    return new Promise((resolve, reject) => {
      const giveUp = (): void => {
        this.waiting = this.waiting.filter((each) => each !== waiter);
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
      this.waiting.push(waiter);
    });
  }

  private reach(position: Position): void {
    if (position > this.reached) this.reached = position;
    if (this.waiting.length === 0) return;
    const { reached } = this;
    const passed = this.waiting.filter((waiter) => waiter.position <= reached);
    this.waiting = this.waiting.filter((waiter) => waiter.position > reached);
    for (const { resolve } of passed) resolve();
  }
}
