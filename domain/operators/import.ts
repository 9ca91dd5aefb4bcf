import type { ImportEvent } from '../events/catalogue.ts';
import { Refusal } from '../errors.ts';
import type { EventStore } from '../event-store.ts';
import { handle, load, type CommandContext, type Fold, type Handled } from '../handle.ts';
import { streams } from '../streams.ts';

/** Whether a log is being filled with another's events. */
export interface ImportState {
  /** The export whose events are under way to this log; null where none are. */
  readonly underWay: { readonly exportId: string; readonly since: string } | null;
}

const importFold: Fold<ImportState, ImportEvent> = {
  initial: { underWay: null },
  evolve(_state, event, { metadata }) {
    switch (event.type) {
      case 'ImportBegun':
        return {
          underWay: { exportId: event.data.export_id, since: metadata.occurredAt },
        };
      case 'ImportCompleted':
        return { underWay: null };
    }
  },
};

/**
 * The import that was begun on a log and not completed; null where there is none. A service that started on such a
 * log would fire what the missing events say has fired.
 */
export async function importUnderWay(store: EventStore): Promise<ImportState['underWay']> {
  return (await load(store, streams.imports(), importFold)).state.underWay;
}

/**
 * Says that a log is being filled from now on, or that it goes on.
 * @throws Refusal `STATE_CONFLICT` while another export's events are under way to it
 */
export function beginImport(
  store: EventStore,
  exportId: string,
  events: number,
  context: CommandContext,
): Promise<Handled<ImportState>> {
  return handle<ImportState, ImportEvent>({
    store,
    stream: streams.imports(),
    fold: importFold,
    context,
    decide({ underWay }) {
      if (underWay === null)
        return [{ type: 'ImportBegun', data: { export_id: exportId, events } }];
      if (underWay.exportId === exportId) return [];
      const since = `the import of ${underWay.exportId} was begun at ${underWay.since}`;
      throw new Refusal('STATE_CONFLICT', `${since} and is not completed`);
    },
  });
}

/** Says that a log holds all that it was to be filled with. */
export function completeImport(
  store: EventStore,
  exportId: string,
  events: number,
  context: CommandContext,
): Promise<Handled<ImportState>> {
  return handle<ImportState, ImportEvent>({
    store,
    stream: streams.imports(),
    fold: importFold,
    context,
    decide: ({ underWay }) =>
      underWay === null ? [] : [{ type: 'ImportCompleted', data: { export_id: exportId, events } }],
  });
}
