import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { SystemClock } from '../app/clock.ts';
import { toIso } from '../domain/clock.ts';
import type { EventStore, StreamAppend } from '../domain/event-store.ts';
import { catalogue, type DomainEvent } from '../domain/events/catalogue.ts';
import { createEventCodec } from '../domain/events/codec.ts';
import { nameBasedId } from '../domain/ids.ts';
import { silent } from '../observability/telemetry.ts';
import { createProjector } from '../projections/projector.ts';
import { runsProjection } from '../projections/runs.ts';
import { openSqliteEventStore } from '../stores/sqlite/event-log/event-store.ts';
import { logFile, openLogForReading } from '../stores/sqlite/event-log/schema.ts';
import { openSqliteReadModel } from '../stores/sqlite/read-model/read-model.ts';
import { makeBenchFolder, removeBenchFolder } from './bench-folder.ts';

/** What was measured, and against what. */
export interface RebuildBenchmark {
  readonly name: string;
  /** Rebuilding the runs view: read, check, fold, write, index, sync, switch. */
  readonly ours: number;
  /** Reading the same log row by row with `JSON.parse` of each, and nothing else. */
  readonly raw: number;
  /** `ours / raw`. */
  readonly ratio: number;
  readonly unit: string;
  readonly events: number;
}

/** Runs that are under way at a time; their events are interleaved in the log. */
const OVERLAP = 64;
const EVENTS_OF_A_RUN = 3;
/** Appends that are on their way at a time. */
const APPENDS = 2_000;

/**
 * How fast the view of all runs is made anew from a log of `events` events, next to plain reading.
 *
 * @param options.events default 1,000,000
 */
export async function benchRebuild(
  options: { readonly events?: number } = {},
): Promise<RebuildBenchmark> {
  const { events = 1_000_000 } = options;
  const directory = await makeBenchFolder('rebuild');
  try {
    const store = await openSqliteEventStore({
      directory,
      codec: createEventCodec(),
      telemetry: silent,
    });
    const readModel = await openSqliteReadModel({
      directory: join(directory, 'views'),
      telemetry: silent,
    });
    try {
      const runs = Math.ceil(events / EVENTS_OF_A_RUN);
      await fillLog(store, runs);
      const raw = readPlainly(directory);
      const projector = createProjector({
        ...{ store, readModel, telemetry: silent, clock: new SystemClock(), fence: 1 },
        projections: [runsProjection],
      });
      const since = performance.now();
      const stop = new AbortController();
      const head = await store.head();
      const level = new Promise<void>((resolve) => {
        projector.onCheckpoint((_, position) => position >= head && resolve());
      });
      const ended = projector.run(stop.signal);
      await level;
      const seconds = (performance.now() - since) / 1000;
      stop.abort();
      await ended;
      const made = await readModel.count(runsProjection, []);
      if (made !== runs) throw new Error(`${made} runs were made, not ${runs}`);
      const ours = (runs * EVENTS_OF_A_RUN) / seconds;
      return {
        name: 'rebuild of the runs view',
        ours: Math.round(ours),
        raw: Math.round(raw),
        ratio: Number((ours / raw).toFixed(2)),
        unit: 'events/s',
        events: runs * EVENTS_OF_A_RUN,
      };
    } finally {
      await readModel.close();
      await store.close();
    }
  } finally {
    await removeBenchFolder(directory);
  }
}

function readPlainly(directory: string): number {
  const database = openLogForReading(logFile(directory));
  const select = database.prepare('SELECT data, metadata FROM events ORDER BY position');
  select.setReturnArrays(true);
  const since = performance.now();
  let read = 0;
  for (const row of select.iterate()) {
    const [data, metadata] = row as unknown as readonly [string, string];
    if (JSON.parse(data) !== undefined && JSON.parse(metadata) !== undefined) read += 1;
  }
  const seconds = (performance.now() - since) / 1000;
  database.close();
  return read / seconds;
}

/** Runs one after the other, each with a step's result, {@link OVERLAP} of them under way at a time. */
async function fillLog(store: EventStore, runs: number): Promise<void> {
  let waiting: Promise<unknown>[] = [];
  for (let at = 0; at < runs + OVERLAP * (EVENTS_OF_A_RUN - 1); at += 1) {
    for (let turn = 0; turn < EVENTS_OF_A_RUN; turn += 1) {
      const run = at - turn * OVERLAP;
      if (run < 0 || run >= runs) continue;
      const { stream, events, expected } = appendOf(run, turn);
      waiting.push(store.append(stream, events, expected));
    }
    if (waiting.length < APPENDS) continue;
    await Promise.all(waiting);
    waiting = [];
  }
  await Promise.all(waiting);
}

function appendOf(run: number, turn: number): StreamAppend {
  const id = nameBasedId('bench', String(run));
  const event = eventOf(run, turn);
  const occurredAt = timeOf(run, turn);
  return {
    stream: `run-${id}`,
    expected: turn === 0 ? 'none' : turn - 1,
    events: [
      {
        ...event,
        id: nameBasedId('bench', String(run), String(turn)),
        metadata: {
          commandId: id,
          $correlationId: id,
          actor: 'service',
          source: 'bench',
          schemaVersion: String(catalogue[event.type].version),
          occurredAt,
        },
      },
    ],
  };
}

function eventOf(run: number, turn: number): DomainEvent {
  const task_id = nameBasedId('bench task', String(run % 1_000));
  const started_at = timeOf(run, 1);
  if (turn === 0) {
    return {
      type: 'RunRequested',
      data: {
        task_id,
        task_revision: 0,
        created_by: nameBasedId('bench agent', String(run % 50)),
        trigger: 'schedule',
        scheduled_for: timeOf(run, 0),
        priority: 5,
        run_at: timeOf(run, 0),
        event: null,
        retry_of: null,
        prior_steps: [],
        overlap_policy: 'allow',
      },
    };
  }
  if (turn === 1) {
    const data = { worker: 'worker-1', attempt: 1, leased_until: timeOf(run + 30, 1) };
    return { type: 'RunStarted', data };
  }
  const finished_at = timeOf(run, 2);
  const step = {
    ...{ step: 'step_0', status: 'succeeded' as const, result: { number: run }, error: null },
    ...{ started_at, finished_at, attempt: 1, log: [] },
  };
  const summary = { total_steps: 1, executed_steps: 1, skipped_steps: 0 };
  const output = { steps: { step_0: { number: run } }, summary };
  return { type: 'RunSucceeded', data: { task_id, started_at, attempt: 1, steps: [step], output } };
}

function timeOf(run: number, turn: number): string {
  return toIso(1_767_225_600_000 + run * 1_000 + turn * 200);
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const events = Number(process.argv[2] ?? 1_000_000);
  process.stdout.write(`${JSON.stringify(await benchRebuild({ events }), null, 2)}\n`);
}
