import { EventStoreError, type EventStore } from '../../domain/event-store.ts';
import { importUnderWay } from '../../domain/operators/import.ts';

/**
 * Keeps a service from starting on a log that is being filled with another's events: it would fire what events that
 * are still to come say has fired. A log that does not answer now is asked by nobody else: it has then been there
 * before.
 *
 * @throws Error that says what to do, in one line
 */
export async function refuseHalfImport(store: EventStore): Promise<void> {
  try {
    const underWay = await importUnderWay(store);
    if (underWay === null) return;
    const since = `an import into this log was begun at ${underWay.since} and is not completed`;
    throw new Error(`${since}: run the same svc import (or svc restore) again`);
  } catch (error) {
    if (error instanceof EventStoreError && error.code === 'UNAVAILABLE') return;
    throw error;
  }
}
