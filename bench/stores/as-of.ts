import { pathToFileURL } from 'node:url';
import { BEGINNING, type EventStore, type StreamAppend } from '../../domain/event-store.ts';
import { catalogue, type DomainEvent } from '../../domain/events/catalogue.ts';
import { createEventCodec } from '../../domain/events/codec.ts';
import { nameBasedId } from '../../domain/ids.ts';
import { streams } from '../../domain/streams.ts';
import { taskDefaults } from '../../domain/tasks/task-definition.ts';
import { silent } from '../../observability/telemetry.ts';
import { documentAsOf, taskAsOf, type Moment } from '../../projections/reading/as-of.ts';
import { runsProjection } from '../../projections/views/runs.ts';
import { openSqliteEventStore } from '../../stores/sqlite/event-log/event-store.ts';
import { makeBenchFolder, removeBenchFolder } from '../bench-folder.ts';
import { EVENTS_OF_A_RUN } from './rebuild-rates.ts';
import { fillLog, timeOf } from './rebuild.ts';
import { percentile } from '../statistics.ts';

/** Milliseconds of each read. */
export interface AsOfBenchmark {
  /** Of runs, each with a stream of its own. */
  readonly runs: readonly number[];
  /** Of one task that has fired a great many times. */
  readonly tasks: readonly number[];
  readonly events: number;
}

/** Reads of each kind. */
const READS = 500;

/** One of so many events of the log is a fire of the one task. */
const FIRES_SHARE = 20;
const APPENDS = 500;

/**
 * How long it takes to say what a run, or a task, was at a moment, from a log of `events` events. Half of the moments
 * are instants, half positions.
 *
 * @param options.events default 1,000,000
 * @param options.directory a folder for the store, which stays and is used again; one that `bench/stores/rebuild.ts` has filled
 *   gets the task besides. Default: one that is removed
 */
export async function benchAsOf(
  options: { readonly events?: number; readonly directory?: string } = {},
): Promise<AsOfBenchmark> {
  const { events = 1_000_000 } = options;
  const directory = options.directory ?? (await makeBenchFolder('as-of'));
  const codec = createEventCodec();
  const store = await openSqliteEventStore({ directory, codec, telemetry: silent });
  try {
    const fires = Math.ceil(events / FIRES_SHARE);
    const runs = Math.ceil((events - fires) / EVENTS_OF_A_RUN);
    if ((await store.head()) === BEGINNING) await fillLog(store, runs);
    const task = await fillTask(store, fires);
    return {
      runs: await measure(
        (index) => {
          const id = nameBasedId('bench', String(spread(index, runs)));
          return (moment) => documentAsOf(store, runsProjection, streams.run(id), id, moment);
        },
        await momentsOf(store, runs),
      ),
      tasks: await measure(
        () => (moment) => taskAsOf(store, task, moment),
        await momentsOf(store, runs),
      ),
      events,
    };
  } finally {
    await store.close();
    if (options.directory === undefined) await removeBenchFolder(directory);
  }
}

/** Moments over the whole span: an instant, a position, and so on. */
async function momentsOf(store: EventStore, runs: number): Promise<readonly Moment[]> {
  const moments: Moment[] = [];
  for (let index = 0; index < READS; index += 1) {
    const run = spread(index * 7, runs);
    if (index % 2 === 0) {
      moments.push({ kind: 'instant', at: timeOf(run, 2) });
      continue;
    }
    const stream = streams.run(nameBasedId('bench', String(run)));
    const [last] = await store.readStream(stream, { direction: 'backwards', limit: 1 });
    moments.push({ kind: 'position', position: last?.position ?? '' });
  }
  return moments;
}

async function measure(
  readerOf: (index: number) => (moment: Moment) => Promise<unknown>,
  moments: readonly Moment[],
): Promise<readonly number[]> {
  const took: number[] = [];
  for (const [index, moment] of moments.entries()) {
    const read = readerOf(index);
    const begun = performance.now();
    await read(moment);
    took.push(performance.now() - begun);
  }
  return took;
}

/** Whole numbers below a bound that lie all over it. */
const spread = (index: number, bound: number): number => (index * 7_919 + 13) % bound;

/** A task with a stream of fires, unless it is there. @returns its id */
async function fillTask(store: EventStore, fires: number): Promise<string> {
  const id = nameBasedId('bench', 'the task');
  const definition = {
    ...taskDefaults,
    title: 'measured',
    description: 'a task that has fired for long',
    created_by: nameBasedId('bench', 'owner'),
    schedule_kind: 'cron' as const,
    schedule_expr: '* * * * *',
    payload: { pipeline: [{ uses: 'echo', with: { text: 'x' } }] },
    tags: [],
  };
  const created: DomainEvent = {
    type: 'TaskCreated',
    data: { definition, anchor: timeOf(0, 0), next_fire_at: timeOf(0, 0) },
  };
  if ((await store.readStream(streams.task(id), { limit: 1 })).length > 0) return id;
  await store.appendInOrder([appendOf(streams.task(id), 0, created, timeOf(0, 0))]);
  const underWay: Promise<unknown>[] = [];
  for (let from = 0; from < fires; from += APPENDS) {
    const appends = Array.from({ length: Math.min(APPENDS, fires - from) }, (_, n) => {
      const nominal = timeOf((from + n) * FIRES_SHARE, 0);
      const event: DomainEvent = {
        type: 'Fired',
        data: {
          nominal,
          run_id: nameBasedId('bench', 'fire', String(from + n)),
          next_fire_at: timeOf((from + n + 1) * FIRES_SHARE, 0),
          task_revision: 0,
          fire_count: from + n + 1,
        },
      };
      return appendOf(streams.fires(id), from + n, event, nominal);
    });
    underWay.push(store.appendInOrder(appends));
    if (underWay.length > 4) await underWay.shift();
  }
  await Promise.all(underWay);
  return id;
}

function appendOf(
  stream: string,
  revision: number,
  event: DomainEvent,
  occurredAt: string,
): StreamAppend {
  const id = nameBasedId('bench', stream, String(revision));
  const about = { actor: 'service', source: 'bench', $correlationId: id, commandId: id };
  const schemaVersion = String(catalogue[event.type].version);
  const metadata = { ...about, schemaVersion, occurredAt };
  const expected = revision === 0 ? 'none' : revision - 1;
  return { stream, expected, events: [{ ...event, id, metadata }] };
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { runs, tasks, events } = await benchAsOf({ events: Number(process.argv[2] ?? 1_000_000) });
  const of = (values: readonly number[]): string =>
    `p50 ${percentile(values, 0.5).toFixed(2)} ms, p99 ${percentile(values, 0.99).toFixed(2)} ms`;
  process.stdout.write(`${events} events: runs ${of(runs)}; a task ${of(tasks)}\n`);
}
