import { mkdirSync } from 'node:fs';
import { createEventCodec } from '../domain/events/codec.ts';
import type { EventStore } from '../domain/event-store.ts';
import type { Telemetry } from '../observability/telemetry.ts';
import type { ReadModel } from '../projections/read-model.ts';
import type { Coordination } from '../scheduler/coordination.ts';
import { openEventStoreDb } from '../stores/eventstoredb/event-store.ts';
import { openMongoCoordination } from '../stores/mongodb/coordination.ts';
import { openMongoReadModel } from '../stores/mongodb/read-model.ts';
import { openSqliteCoordination } from '../stores/sqlite/coordination/coordination.ts';
import { openSqliteEventStore } from '../stores/sqlite/event-log/event-store.ts';
import { openNotices, type Notices } from '../stores/sqlite/event-log/notices.ts';
import { openSqliteReadModel } from '../stores/sqlite/read-model/read-model.ts';
import type { Configuration } from './configuration.ts';

/** The three ports, as the settings say. */
export interface Stores {
  readonly store: EventStore;
  readonly readModel: ReadModel;
  readonly coordination: Coordination;
  /** What the processes of this machine tell each other at once; null where each store is a server. */
  readonly notices: Notices | null;
  close(): Promise<void>;
}

/** What opening the stores needs of the settings. */
export type StoreSettings = Pick<Configuration, 'dataDirectory' | 'eventStoreUrl' | 'readModelUrl'>;

/**
 * Opens the stores. A server that is away does not keep this from succeeding: each call says so instead.
 * @throws Error when the data directory can't be made or written, naming it
 */
export async function openStores(settings: StoreSettings, telemetry: Telemetry): Promise<Stores> {
  const { dataDirectory: directory, eventStoreUrl, readModelUrl } = settings;
  const embedded = eventStoreUrl === undefined || readModelUrl === undefined;
  if (embedded) mkdirSync(directory, { recursive: true, mode: 0o700 });
  const codec = createEventCodec();
  const notices = embedded ? await openNotices(directory) : null;
  const store =
    eventStoreUrl === undefined
      ? await openSqliteEventStore({ directory, codec, telemetry, ...(notices ? { notices } : {}) })
      : await openEventStoreDb({ url: eventStoreUrl, codec, telemetry });
  const [readModel, coordination] =
    readModelUrl === undefined
      ? [
          await openSqliteReadModel({ directory, telemetry }),
          await openSqliteCoordination({ directory, telemetry }),
        ]
      : [
          await openMongoReadModel({ url: readModelUrl, telemetry }),
          await openMongoCoordination({ url: readModelUrl, telemetry }),
        ];
  return {
    store,
    readModel,
    coordination,
    notices,
    async close() {
      await store.close();
      await Promise.all([readModel.close(), coordination.close()]);
      await notices?.close();
    },
  };
}
