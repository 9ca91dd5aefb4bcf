import { join } from 'node:path';
import type { EventStore } from '../../domain/event-store.ts';
import { createEventCodec } from '../../domain/events/codec.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { ReadModel } from '../../projections/read-model.ts';
import { openSqliteEventStore } from '../../stores/sqlite/event-log/event-store.ts';
import { openSqliteReadModel } from '../../stores/sqlite/read-model/read-model.ts';

/** Opens a log and views for `RunningApi`. `stop` is called when both are closed. */
export type OpenStores = (
  directory: string,
  telemetry: Telemetry,
) => Promise<{
  readonly log: EventStore;
  readonly kept: ReadModel;
  readonly stop?: () => Promise<void>;
}>;

/** The embedded stores. */
export const openEmbedded: OpenStores = async (directory, telemetry) => {
  const codec = createEventCodec();
  return {
    log: await openSqliteEventStore({ directory: join(directory, 'log'), codec, telemetry }),
    kept: await openSqliteReadModel({ directory: join(directory, 'views'), telemetry }),
  };
};
