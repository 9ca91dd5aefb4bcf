import { decorate } from '../../domain/decorate.ts';
import { EventStoreError, type EventStore } from '../../domain/event-store.ts';
import { serverProblemOf } from '../../domain/server-problem.ts';

/** Milliseconds for which a failed append counts. */
const REFUSAL_MS = 60_000;

/** A log, and the result of this process's appends. */
export interface WatchedLog {
  readonly store: EventStore;
  /** Why the last append within a minute failed; null if it succeeded, or there was none. */
  readonly refusal: () => string | null;
}

/**
 * Watches appends: a readable log may still reject writes (disk full, read-only), and only an append shows that.
 * @param now monotonic milliseconds
 */
export function watchAppends(
  store: EventStore,
  now: () => number = () => performance.now(),
): WatchedLog {
  let refused: { readonly at: number; readonly why: string } | null = null;
  const watched = async <T>(append: Promise<T>): Promise<T> => {
    try {
      const result = await append;
      refused = null;
      return result;
    } catch (error) {
      if (error instanceof EventStoreError && error.code === 'UNAVAILABLE') {
        refused = { at: now(), why: serverProblemOf(error)?.summary ?? error.message };
      }
      throw error;
    }
  };
  return {
    store: decorate(store, {
      append: (stream, events, expected) => watched(store.append(stream, events, expected)),
      appendInOrder: (appends) => watched(store.appendInOrder(appends)),
    }),
    refusal: () => (refused !== null && now() - refused.at < REFUSAL_MS ? refused.why : null),
  };
}
