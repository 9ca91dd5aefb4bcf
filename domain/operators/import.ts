import type { ImportEvent } from '../events/catalogue.ts';
import { RefusalError } from '../errors.ts';
import type { EventStore } from '../event-store.ts';
import { handle, load, type CommandContext, type Fold, type Handled } from '../handle.ts';
import { streams } from '../streams.ts';

export interface ImportState {
  /** The export that is being imported into this log; null for none. */
  readonly unfinished: { readonly exportId: string; readonly since: string } | null;
}

const importFold: Fold<ImportState, ImportEvent> = {
  initial: { unfinished: null },
  evolve(_state, event, { metadata }) {
    if (event.type === 'ImportCompleted') return { unfinished: null };
    return { unfinished: { exportId: event.data.export_id, since: metadata.occurredAt } };
  },
};

/**
 * The unfinished import of a log; null for none. A service that started with such a log would repeat fires not yet
 * imported.
 */
export async function unfinishedImport(store: EventStore): Promise<ImportState['unfinished']> {
  return (await load(store, streams.imports(), importFold)).state.unfinished;
}

/**
 * Records that an import has started. No event if it continues.
 * @throws RefusalError `STATE_CONFLICT` while another export is being imported
 */
export function beginImport(
  store: EventStore,
  exportId: string,
  events: number,
  context: CommandContext,
): Promise<Handled<ImportState>> {
  return onImport(store, context, ({ unfinished }) => {
    if (unfinished === null)
      return [{ type: 'ImportBegun', data: { export_id: exportId, events } }];
    if (unfinished.exportId === exportId) return [];
    const { exportId: other, since } = unfinished;
    const message = `the import of ${other}, begun at ${since}, is not complete`;
    throw new RefusalError('STATE_CONFLICT', message);
  });
}

/** Records that the import is complete. */
export function completeImport(
  store: EventStore,
  exportId: string,
  events: number,
  context: CommandContext,
): Promise<Handled<ImportState>> {
  return onImport(store, context, ({ unfinished }) =>
    unfinished === null ? [] : [{ type: 'ImportCompleted', data: { export_id: exportId, events } }],
  );
}

function onImport(
  store: EventStore,
  context: CommandContext,
  decide: (state: ImportState) => readonly ImportEvent[],
): Promise<Handled<ImportState>> {
  return handle({ store, stream: streams.imports(), fold: importFold, context, decide });
}
