import { decorated } from '../../domain/decorated.ts';
import { EventStoreError, type EventStore } from '../../domain/event-store.ts';

/** For how long an append that failed says something of the log. Milliseconds. */
const TELLING = 60_000;

/** A log, and what the appends of this process say of it. */
export interface WatchedLog {
  readonly store: EventStore;
  /** Why the last append of the last minute could not be made; null where it could, or there was none. */
  readonly refusal: () => string | null;
}

/**
 * A log that is read may still take nothing: its disk is full, or read-only. Nothing but an append finds that out, so
 * those that are made anyway are looked at.
 * @param now milliseconds that never go back
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
        refused = { at: now(), why: error.message };
      }
      throw error;
    }
  };
  return {
    store: decorated(store, {
      append: (stream, events, expected) => watched(store.append(stream, events, expected)),
      appendInOrder: (appends) => watched(store.appendInOrder(appends)),
    }),
    refusal: () => (refused !== null && now() - refused.at < TELLING ? refused.why : null),
  };
}
