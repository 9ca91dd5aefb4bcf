import { join } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { SystemClock } from '../../app/clock.ts';
import { FillingThreads } from '../../app/projecting/parallel-fill/fill-threads.ts';
import type { EventStore } from '../../domain/event-store.ts';
import { silent } from '../../observability/telemetry.ts';
import { createProjector } from '../../projections/projector/projector.ts';
import type { ReadModel } from '../../projections/read-model.ts';
import { runsProjection } from '../../projections/views/runs.ts';
import { logFile, openLogForReading } from '../../stores/sqlite/event-log/schema.ts';
import { openSqliteReadModel } from '../../stores/sqlite/read-model/read-model.ts';
import { secondsOf } from '../bench-service.ts';
import { withLog } from '../log.ts';
import { EVENTS_PER_RUN } from './run-log.ts';

/** A log and the number of its runs. */
interface RebuildOrder {
  readonly directory: string;
  readonly runs: number;
}

/** Events a second. */
export interface RebuildRates {
  readonly ours: number;
  readonly raw: number;
}

/** Builds the view of runs. Plain reading comes before and after it, so that a slow minute affects both. */
async function measure(
  { directory, runs }: RebuildOrder,
  store: EventStore,
): Promise<RebuildRates> {
  const events = runs * EVENTS_PER_RUN;
  const views = join(directory, 'views');
  const readModel = await openSqliteReadModel({ directory: views, telemetry: silent });
  try {
    const before = await readPlainly(directory);
    const place = { log: directory, views, logLevel: 'warn' } as const;
    const fillElsewhere = new FillingThreads({ place, telemetry: silent });
    const seconds = await rebuild(store, readModel, fillElsewhere);
    const after = await readPlainly(directory);
    const succeeded = { field: 'state', op: 'eq', value: 'succeeded' } as const;
    const count = await readModel.count(runsProjection, [succeeded]);
    if (count !== runs) throw new Error(`the view has ${count} runs, not ${runs}`);
    return { ours: events / seconds, raw: (2 * events) / (before + after) };
  } finally {
    await readModel.close();
  }
}

/** Returns the seconds it takes. */
async function rebuild(
  store: EventStore,
  readModel: ReadModel,
  fillElsewhere: FillingThreads,
): Promise<number> {
  const projector = createProjector({
    store,
    readModel,
    telemetry: silent,
    clock: new SystemClock(),
    fence: 1,
    projections: [runsProjection],
    fillElsewhere,
  });
  const stop = new AbortController();
  const head = await store.head();
  let ended: Promise<void> | undefined;
  const seconds = await secondsOf(async () => {
    const caughtUp = new Promise<void>((resolve) => {
      projector.onCheckpoint((_, position) => position >= head && resolve());
    });
    ended = projector.run(stop.signal);
    await caughtUp;
    // The view is live when it is indexed, synced and switched to.
    while ((await readModel.liveGeneration(runsProjection)) === null) {
      await new Promise((resolve) => setImmediate(resolve));
    }
  });
  stop.abort();
  await ended;
  return seconds;
}

/** Returns the seconds it takes. */
async function readPlainly(directory: string): Promise<number> {
  const database = openLogForReading(logFile(directory));
  const select = database.prepare('SELECT data, metadata FROM events ORDER BY position');
  select.setReturnArrays(true);
  const seconds = await secondsOf(async () => {
    for (const row of select.iterate()) {
      const [data, metadata] = row as unknown as readonly [string, string];
      if (JSON.parse(data) === undefined || JSON.parse(metadata) === undefined) break;
    }
  });
  database.close();
  return seconds;
}

if (parentPort === null) throw new Error('this is the entry of a thread');
const order = workerData as RebuildOrder;
parentPort.postMessage(await withLog(order.directory, (store) => measure(order, store)));
