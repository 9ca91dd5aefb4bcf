import type { EventStore, Position } from '../../domain/event-store.ts';
import { idOf } from '../../domain/streams.ts';
import { TopicListeners, type ListenedPage } from './topic-listeners.ts';
import { loadView } from './load-view.ts';
import { ReachedPosition } from './reached-position.ts';
import type { ReadModel } from '../read-model.ts';
import { topicsProjection } from '../views/topics.ts';

/**
 * The tasks that a topic triggers, in memory: the view of topics, loaded once and followed live. With the index, a
 * publication needs no lookup.
 */
export class TopicIndex {
  readonly #store: EventStore;
  readonly #readModel: ReadModel;
  readonly #isStopped: (owner: string) => boolean;
  #listeners = new TopicListeners();
  /** The index knows no listeners until it has first caught up with the log. */
  readonly #reached = new ReachedPosition();

  /** @param isStopped whether nothing may start for an agent, so that no event triggers its tasks. Default: never */
  constructor(
    store: EventStore,
    readModel: ReadModel,
    isStopped: (owner: string) => boolean = () => false,
  ) {
    this.#store = store;
    this.#readModel = readModel;
    this.#isStopped = isStopped;
  }

  /** Loads the view, then follows the log until the signal is aborted. */
  async follow(signal: AbortSignal, ready: () => void): Promise<void> {
    // Publications use the old index until the new one is level with the log. After an
    // interruption, the old index may contain tasks that were canceled in the meantime.
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
        const last = message.events.at(-1);
        if (caughtUp && last !== undefined) this.#reached.reach(last.position);
      } else {
        this.#listeners = fresh;
        this.#reached.reach(message.position);
        if (!caughtUp) ready();
        caughtUp = true;
      }
    }
  }

  /**
   * Sorted ids of the active event tasks of a namespace whose pattern matches, except tasks of agents for which nothing
   * may start.
   */
  matching(namespace: string, topic: string): readonly string[] {
    return this.#listeners.matching(namespace, topic, this.#isStopped);
  }

  /**
   * A page of the patterns that active event tasks listen to, with the index's position: see {@link TopicListeners.page}.
   */
  page(
    ...asked: Parameters<TopicListeners['page']>
  ): ListenedPage & { readonly position: Position } {
    return { ...this.#listeners.page(...asked), position: this.#reached.position };
  }

  /**
   * Resolves once the index is loaded and has passed a position. Never times out. Rejects with the signal's reason when
   * the signal is aborted.
   */
  passed(position: Position, signal: AbortSignal): Promise<void> {
    return this.#reached.passed(position, signal);
  }
}
