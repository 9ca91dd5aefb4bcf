import { join } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { SystemClock } from '../../app/clock.ts';
import { FillingThreads } from '../../app/projecting/filling-threads.ts';
import type { EventStore } from '../../domain/event-store.ts';
import { createEventCodec } from '../../domain/events/codec.ts';
import { silent } from '../../observability/telemetry.ts';
import { createProjector } from '../../projections/projector/projector.ts';
import type { ReadModel } from '../../projections/read-model.ts';
import { runsProjection } from '../../projections/views/runs.ts';
import { openSqliteEventStore } from '../../stores/sqlite/event-log/event-store.ts';
import { logFile, openLogForReading } from '../../stores/sqlite/event-log/schema.ts';
import { openSqliteReadModel } from '../../stores/sqlite/read-model/read-model.ts';
import { EVENTS_OF_A_RUN, VIEWS, type RebuildOrder, type RebuildRates } from './rebuild-rates.ts';

/** Makes the view of runs from the log, with plain reading before and after it: a slow minute hits both. */
async function measure({ directory, runs }: RebuildOrder): Promise<RebuildRates> {
  const events = runs * EVENTS_OF_A_RUN;
  const codec = createEventCodec();
  const store = await openSqliteEventStore({ directory, codec, telemetry: silent });
  const views = join(directory, VIEWS);
  const readModel = await openSqliteReadModel({ directory: views, telemetry: silent });
  try {
    const before = readPlainly(directory);
    const place = { log: directory, views, logLevel: 'warn' } as const;
    const elsewhere = new FillingThreads({ place, telemetry: silent });
    const seconds = await rebuild(store, readModel, elsewhere);
    const after = readPlainly(directory);
    const ended = { field: 'state', op: 'eq', value: 'succeeded' } as const;
    const made = await readModel.count(runsProjection, [ended]);
    if (made !== runs) throw new Error(`${made} runs were made, not ${runs}`);
    return { ours: events / seconds, raw: (2 * events) / (before + after) };
  } finally {
    await readModel.close();
    await store.close();
  }
}

/** @returns seconds */
async function rebuild(
  store: EventStore,
  readModel: ReadModel,
  fillElsewhere: FillingThreads,
): Promise<number> {
  const projector = createProjector({
    ...{ store, readModel, telemetry: silent, clock: new SystemClock(), fence: 1 },
    ...{ projections: [runsProjection], fillElsewhere },
  });
  const stop = new AbortController();
  const head = await store.head();
  const since = performance.now();
  const level = new Promise<void>((resolve) => {
    projector.onCheckpoint((_, position) => position >= head && resolve());
  });
  const ended = projector.run(stop.signal);
  await level;
  // What is level is not live yet: indexed, on the disk, and found by those who read.
  while ((await readModel.liveGeneration(runsProjection)) === null) {
    await new Promise((resolve) => setImmediate(resolve));
  }
  const seconds = (performance.now() - since) / 1000;
  stop.abort();
  await ended;
  return seconds;
}

/** @returns seconds */
function readPlainly(directory: string): number {
  const database = openLogForReading(logFile(directory));
  const select = database.prepare('SELECT data, metadata FROM events ORDER BY position');
  select.setReturnArrays(true);
  const since = performance.now();
  for (const row of select.iterate()) {
    const [data, metadata] = row as unknown as readonly [string, string];
    if (JSON.parse(data) === undefined || JSON.parse(metadata) === undefined) break;
  }
  const seconds = (performance.now() - since) / 1000;
  database.close();
  return seconds;
}

if (parentPort === null) throw new Error('this is the entry of a thread');
parentPort.postMessage(await measure(workerData as RebuildOrder));
