import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { PROJECTOR_HEAP } from '../../app/projecting/projector.ts';
import { setEngineOptions } from '../../app/starting/engine-options.ts';
import { toIso } from '../../domain/clock.ts';
import type { EventStore, StreamAppend } from '../../domain/event-store.ts';
import { catalogue, type DomainEvent } from '../../domain/events/catalogue.ts';
import { createEventCodec } from '../../domain/events/codec.ts';
import { nameBasedId } from '../../domain/ids.ts';
import { silent } from '../../observability/telemetry.ts';
import { openSqliteEventStore } from '../../stores/sqlite/event-log/event-store.ts';
import { logFile } from '../../stores/sqlite/event-log/schema.ts';
import { startThread } from '../../stores/sqlite/read-model/start-thread.ts';
import { makeBenchFolder, removeBenchFolder } from '../bench-folder.ts';
import { EVENTS_OF_A_RUN, VIEWS, type RebuildOrder, type RebuildRates } from './rebuild-rates.ts';

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
/** Appends that are sent together, and how many such sequences are on their way at a time. */
const APPENDS = 500;
const SEQUENCES = 4;

/**
 * How fast the view of all runs is made anew from a log of `events` events, next to plain reading.
 *
 * @param options.events default 1,000,000
 * @param options.directory a folder with such a log and without views, or empty: the log that is made there stays.
 *   Default: one that is removed
 */
export async function benchRebuild(
  options: { readonly events?: number; readonly directory?: string } = {},
): Promise<RebuildBenchmark> {
  const { events = 1_000_000 } = options;
  const directory = options.directory ?? (await makeBenchFolder('rebuild'));
  try {
    const runs = Math.ceil(events / EVENTS_OF_A_RUN);
    if (!existsSync(logFile(directory))) await makeLog(directory, runs);
    const { ours, raw } = await measureInThread({ directory, runs });
    return {
      name: 'rebuild of the runs view',
      ours: Math.round(ours),
      raw: Math.round(raw),
      ratio: Number((ours / raw).toFixed(3)),
      unit: 'events/s',
      events: runs * EVENTS_OF_A_RUN,
    };
  } finally {
    if (options.directory === undefined) await removeBenchFolder(directory);
    else await rm(join(directory, VIEWS), { recursive: true, force: true });
  }
}

/** In a thread like the projector's, with as large a heap, which is collected as the service's is. */
async function measureInThread(order: RebuildOrder): Promise<RebuildRates> {
  setEngineOptions();
  const thread = startThread('./rebuild-thread', import.meta.url, order, PROJECTOR_HEAP);
  const ended = once(thread, 'exit');
  const [rates] = (await once(thread, 'message')) as [RebuildRates];
  await ended;
  return rates;
}

/** Makes a log of so many runs in a folder. */
export async function makeLog(directory: string, runs: number): Promise<void> {
  const codec = createEventCodec();
  const store = await openSqliteEventStore({ directory, codec, telemetry: silent });
  try {
    await fillLog(store, runs);
  } finally {
    await store.close();
  }
}

/** Runs one after the other, each with a step's result, {@link OVERLAP} of them under way at a time. */
export async function fillLog(store: EventStore, runs: number): Promise<void> {
  const underWay: Promise<unknown>[] = [];
  let appends: StreamAppend[] = [];
  for (let at = 0; at < runs + OVERLAP * (EVENTS_OF_A_RUN - 1); at += 1) {
    for (let turn = 0; turn < EVENTS_OF_A_RUN; turn += 1) {
      const run = at - turn * OVERLAP;
      if (run >= 0 && run < runs) appends.push(appendOf(run, turn));
    }
    if (appends.length < APPENDS) continue;
    underWay.push(store.appendInOrder(appends));
    appends = [];
    if (underWay.length > SEQUENCES) await underWay.shift();
  }
  await Promise.all([...underWay, store.appendInOrder(appends)]);
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

/** When an event of a run occurred: a run a second. */
export function timeOf(run: number, turn: number): string {
  return toIso(1_767_225_600_000 + run * 1_000 + turn * 200);
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [, , events = '1000000', directory] = process.argv;
  const options = { events: Number(events), ...(directory === undefined ? {} : { directory }) };
  process.stdout.write(`${JSON.stringify(await benchRebuild(options), null, 2)}\n`);
}
