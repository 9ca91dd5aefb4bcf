import { decorated } from '../../domain/decorated.ts';
import { EventStoreError, type EventStore } from '../../domain/event-store.ts';
import { importUnderWay } from '../../domain/operators/import.ts';

/**
 * Keeps a service from starting on a log that is being filled with another's events: it would fire what events that
 * are still to come say has fired.
 *
 * @returns the log; where it does not answer now, one that is {@link onceWhole}
 * @throws Error that says what to do, in one line
 */
export async function refuseHalfImport(store: EventStore): Promise<EventStore> {
  try {
    const fault = await halfImport(store);
    if (fault !== null) throw new Error(fault);
    return store;
  } catch (error) {
    if (error instanceof EventStoreError && error.code === 'UNAVAILABLE') return onceWhole(store);
    throw error;
  }
}

/**
 * A log that takes nothing, tells nothing to those who follow it, and is not well until it was there to be looked at
 * and is not being filled. The very server that was away when a service started may be why an import was broken off.
 */
export function onceWhole(store: EventStore): EventStore {
  let isWhole = false;
  const look = async (): Promise<void> => {
    if (isWhole) return;
    const fault = await halfImport(store);
    if (fault !== null) throw new EventStoreError('UNAVAILABLE', fault);
    isWhole = true;
  };
  return decorated(store, {
    async append(...given) {
      await look();
      return store.append(...given);
    },
    async appendInOrder(appends) {
      await look();
      return store.appendInOrder(appends);
    },
    async *subscribe(options) {
      await look();
      yield* store.subscribe(options);
    },
    async ping() {
      await store.ping();
      await look();
    },
  });
}

/** What is wrong with a log, and what to do; null where no import into it is under way. */
async function halfImport(store: EventStore): Promise<string | null> {
  const underWay = await importUnderWay(store);
  if (underWay === null) return null;
  const since = `an import into this log was begun at ${underWay.since} and is not completed`;
  return `${since}: run the same svc import (or svc restore) again`;
}
