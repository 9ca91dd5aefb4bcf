import type { Clock } from '../domain/clock.ts';
import { createEventCodec } from '../domain/events/codec.ts';
import type { EventCodec, EventStore } from '../domain/event-store.ts';
import { catalogue, type EventType } from '../domain/events/catalogue.ts';
import type { Telemetry } from '../observability/telemetry.ts';
import { tracedEventStore } from '../observability/traced-event-store.ts';
import { readingOlderShapes } from '../projections/generations/older-shape.ts';
import type { ReadModel } from '../projections/read-model.ts';
import type { Coordination } from '../scheduler/coordination.ts';
import { openNotices, type Notices } from '../stores/sqlite/event-log/following/notices.ts';
import { makeFolder } from '../stores/folder.ts';
import { watchAppends } from './watching/append-watch.ts';
import type { Configuration } from './configuration/configuration.ts';
import { ConfigurationError } from './configuration/setting-readers.ts';

/** The stores of a process. */
export interface Stores {
  readonly store: EventStore;
  readonly readModel: ReadModel;
  readonly coordination: Coordination;
  /** Why the log rejected this process's last append; null if it did not, or a minute ago. */
  readonly refusal: () => string | null;
  /** Notices between the processes of this machine; null if all stores are servers. */
  readonly notices: Notices | null;
  /**
   * Compiles the schemas of events before their first use: common types at once, the others one by one. Ends when all are
   * compiled or the signal aborts.
   */
  warmUp(clock: Pick<Clock, 'sleep'>, signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

/** Common types of events. */
const commonTypes: readonly EventType[] = [
  'Fired',
  'RunRequested',
  'RunStarted',
  'RunSucceeded',
  'TaskCreated',
];

/** Milliseconds between two rare types, which together take as long as hundreds of runs. */
const WARM_UP_INTERVAL = 200;

/** The settings of the stores. */
export type StoreSettings = Pick<Configuration, 'dataDirectory' | 'eventStoreUrl' | 'readModelUrl'>;

/**
 * Opens the stores. An unavailable server is no error here, but of each call.
 *
 * @param readOnly creates, changes and removes no embedded file and rejects appends. The log must exist; missing views and
 *   coordination are empty
 * @throws Error if the data directory cannot be created or written; ConfigurationError for an invalid address
 */
export async function openStores(
  settings: StoreSettings,
  telemetry: Telemetry,
  readOnly = false,
): Promise<Stores> {
  const { dataDirectory: directory, eventStoreUrl, readModelUrl } = settings;
  const shared = !readOnly && (eventStoreUrl === undefined || readModelUrl === undefined);
  if (shared) makeDirectory(directory);
  const notices = shared ? await openNotices(directory) : null;
  const codec = createEventCodec();
  const { traces } = telemetry;
  const opened = await openEventStore(settings, { codec, telemetry, notices, readOnly });
  const { store: watched, refusal } = watchAppends(opened);
  const store = traces === undefined ? watched : tracedEventStore(watched, traces);
  const [views, coordination] = await openViews(settings, telemetry, readOnly);
  const readModel = readingOlderShapes(views);
  return {
    store,
    readModel,
    coordination,
    refusal,
    notices,
    async warmUp(clock, signal) {
      for (const type of commonTypes) {
        codec.prepare(type);
        await new Promise((resolve) => setImmediate(resolve));
      }
      for (const type of Object.keys(catalogue) as EventType[]) {
        await clock.sleep(WARM_UP_INTERVAL, signal).catch(() => {});
        if (signal.aborted) return;
        codec.prepare(type);
      }
    },
    async close() {
      await store.close();
      await Promise.all([readModel.close(), coordination.close()]);
      await notices?.close();
    },
  };
}

/** @throws Error with the setting and the folder */
function makeDirectory(directory: string): void {
  try {
    makeFolder(directory);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(`SVC_DATA_DIR: ${directory} can't be made: ${why}`, { cause: error });
  }
}

/** Opens a server's store, which only fails for an invalid address. @throws ConfigurationError with the setting */
async function at<T>(variable: string, open: () => Promise<T>): Promise<T> {
  try {
    return await open();
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new ConfigurationError(variable, `can't be used: ${why}`);
  }
}

// Adapters are imported on demand, because the drivers are most of the code that a process loads.

async function openEventStore(
  { dataDirectory: directory, eventStoreUrl: url }: StoreSettings,
  options: {
    readonly codec: EventCodec;
    readonly telemetry: Telemetry;
    readonly notices: Notices | null;
    readonly readOnly: boolean;
  },
): Promise<EventStore> {
  const { codec, telemetry, notices, readOnly } = options;
  if (url !== undefined) {
    const { openEventStoreDb } = await import('../stores/eventstoredb/event-store.ts');
    return at('SVC_EVENT_STORE_URL', () => openEventStoreDb({ url, codec, telemetry }));
  }
  const { openSqliteEventStore } = await import('../stores/sqlite/event-log/event-store.ts');
  const shared = notices ? { notices } : {};
  return openSqliteEventStore({ directory, codec, telemetry, readOnly, ...shared });
}

async function openViews(
  { dataDirectory: directory, readModelUrl: url }: StoreSettings,
  telemetry: Telemetry,
  readOnly: boolean,
): Promise<[ReadModel, Coordination]> {
  if (url !== undefined) {
    const { openMongoReadModel } = await import('../stores/mongodb/read-model.ts');
    const { openMongoCoordination } = await import('../stores/mongodb/coordination.ts');
    return at('SVC_READ_MODEL_URL', async () => [
      await openMongoReadModel({ url, telemetry }),
      await openMongoCoordination({ url, telemetry }),
    ]);
  }
  const { openSqliteReadModel } = await import('../stores/sqlite/read-model/read-model.ts');
  const { openSqliteCoordination } = await import('../stores/sqlite/coordination/coordination.ts');
  return [
    await openSqliteReadModel({ directory, telemetry, readOnly }),
    await openSqliteCoordination({ directory, telemetry, readOnly }),
  ];
}
