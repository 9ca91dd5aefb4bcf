import { decorate } from '../../domain/decorate.ts';
import { EventStoreError, type EventStore } from '../../domain/event-store.ts';
import { unfinishedImport } from '../../domain/operators/import.ts';

/**
 * Rejects a start on a log with an unfinished import. The service would repeat fires that the missing events record.
 * Returns the log; if it is unavailable now, one that is {@link onceImportCompleted}.
 * @throws Error that says what to do, in one line
 */
export async function rejectUnfinishedImport(store: EventStore): Promise<EventStore> {
  try {
    const problem = await importProblem(store);
    if (problem !== null) throw new Error(problem);
    return store;
  } catch (error) {
    if (error instanceof EventStoreError && error.code === 'UNAVAILABLE')
      return onceImportCompleted(store);
    throw error;
  }
}

/**
 * A log that is unavailable for appends, subscriptions and health checks until it has been checked for an unfinished
 * import. An outage during the start can be the reason why an import was interrupted.
 */
export function onceImportCompleted(store: EventStore): EventStore {
  let isChecked = false;
  const check = async (): Promise<void> => {
    if (isChecked) return;
    const problem = await importProblem(store);
    if (problem !== null) throw new EventStoreError('UNAVAILABLE', problem);
    isChecked = true;
  };
  return decorate(store, {
    async append(...given) {
      await check();
      return store.append(...given);
    },
    async appendInOrder(appends) {
      await check();
      return store.appendInOrder(appends);
    },
    async *subscribe(options) {
      await check();
      yield* store.subscribe(options);
    },
    async ping() {
      await store.ping();
      await check();
    },
  });
}

/** Why the log cannot be used and what to do; null if no import is unfinished. */
async function importProblem(store: EventStore): Promise<string | null> {
  const underWay = await unfinishedImport(store);
  if (underWay === null) return null;
  const what = `an import into this log was started at ${underWay.since} and is unfinished`;
  return `${what}: run the same svc import (or svc restore) again`;
}
