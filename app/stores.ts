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

/** The three ports, as the settings say. */
export interface Stores {
  readonly store: EventStore;
  readonly readModel: ReadModel;
  readonly coordination: Coordination;
  /** Why the log has not taken the last event that this process had for it; null where it has, or a minute ago. */
  readonly refusal: () => string | null;
  /** What the processes of this machine tell each other at once; null where each store is a server. */
  readonly notices: Notices | null;
  /**
   * Makes ready what the first events would have to wait for: what each day brings now, the rest a little at a time.
   * Ends when all is ready or the signal is aborted.
   */
  warmUp(clock: Pick<Clock, 'sleep'>, signal: AbortSignal): Promise<void>;
  close(): Promise<void>;
}

/** Types of events that hardly a minute goes without. */
const daily: readonly EventType[] = [
  'Fired',
  'RunRequested',
  'RunStarted',
  'RunSucceeded',
  'TaskCreated',
];

/** Between the preparations of two rare types: together they take as long as hundreds of runs. Milliseconds. */
const WARM_UP_PAUSE = 200;

/** What opening the stores needs of the settings. */
export type StoreSettings = Pick<Configuration, 'dataDirectory' | 'eventStoreUrl' | 'readModelUrl'>;

/**
 * Opens the stores. A server that is away does not keep this from succeeding: each call says so instead.
 *
 * @param readOnly to look at what is there: of the embedded ones nothing is made, changed or thrown away, and appends to
 *   the log are refused; its file must be there. Views and coordination that are not there are as empty ones
 * @throws Error when the data directory can't be made or written, naming it; ConfigurationError for an address that can't
 *   be read
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
      for (const type of daily) {
        codec.prepare(type);
        await new Promise((resolve) => setImmediate(resolve));
      }
      for (const type of Object.keys(catalogue) as EventType[]) {
        // Told to end, it ends by the look below.
        await clock.sleep(WARM_UP_PAUSE, signal).catch(() => {});
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

/** @throws Error naming the setting and the folder */
function makeDirectory(directory: string): void {
  try {
    makeFolder(directory);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(`SVC_DATA_DIR: ${directory} can't be made: ${why}`, { cause: error });
  }
}

/**
 * Opens what a setting has the address of. As a server that is away keeps nothing from being opened, what fails is the
 * reading of the address.
 * @throws ConfigurationError naming the setting
 */
async function at<T>(variable: string, open: () => Promise<T>): Promise<T> {
  try {
    return await open();
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new ConfigurationError(variable, `can't be used: ${why}`);
  }
}

// The adapters are loaded when they are asked for: the drivers that a process does not use would be most of what
// it loads.

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
  const told = notices ? { notices } : {};
  return openSqliteEventStore({ directory, codec, telemetry, readOnly, ...told });
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
