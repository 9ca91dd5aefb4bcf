import { BEGINNING, type EventStore, type StreamAppend } from '../../domain/event-store.ts';
import type { DomainEvent } from '../../domain/events/catalogue.ts';
import { nameBasedId } from '../../domain/ids.ts';
import { streams } from '../../domain/streams.ts';
import { taskDefaults } from '../../domain/tasks/task-definition.ts';
import { documentAsOf, taskAsOf, type PointInTime } from '../../projections/reading/as-of.ts';
import { runsProjection } from '../../projections/views/runs.ts';
import { withBenchFolder } from '../bench-folder.ts';
import { secondsOf } from '../bench-service.ts';
import { appendAll, withLog } from '../log.ts';
import { percentile } from '../statistics.ts';
import { lessThan, type Benchmark } from '../benchmark.ts';
import { appendOf, EVENTS_PER_RUN, runAppends, timeOf } from './run-log.ts';

/** Reads of each kind. */
const READS = 500;
/** One in this many events is a fire of the one task. */
const EVENTS_PER_FIRE = 20;

/** Reads of runs and of one task, which has fired very often, as of instants and positions. */
export const asOf: Benchmark = {
  targets: [lessThan('run p99 ms', 20), lessThan('task p99 ms', 20)],
  count: ({ events }) => events,
  measure: ({ events, store: kept }) =>
    withBenchFolder('as-of', (folder) => withLog(folder, (store) => measure(store, events)), kept),
};

async function measure(store: EventStore, events: number) {
  const fires = Math.ceil(events / EVENTS_PER_FIRE);
  const count = Math.ceil((events - fires) / EVENTS_PER_RUN);
  if ((await store.head()) === BEGINNING) await appendAll(store, runAppends(count), 500);
  const task = await makeTask(store, fires);
  const runs = await times(store, count, (moment, index) => {
    const id = nameBasedId('bench', String(spread(index, count)));
    return documentAsOf(store, runsProjection, streams.run(id), id, moment);
  });
  const tasks = await times(store, count, (moment) => taskAsOf(store, task, moment));
  return {
    'run p50 ms': percentile(runs, 0.5),
    'run p99 ms': percentile(runs, 0.99),
    'task p50 ms': percentile(tasks, 0.5),
    'task p99 ms': percentile(tasks, 0.99),
  };
}

/** Milliseconds of each read, as of an instant and a position in turn, over the whole log. */
async function times(
  store: EventStore,
  runs: number,
  read: (moment: PointInTime, index: number) => Promise<unknown>,
): Promise<readonly number[]> {
  const took: number[] = [];
  for (let index = 0; index < READS; index += 1) {
    const moment = await momentOf(store, spread(index * 7, runs), index % 2 === 0);
    took.push((await secondsOf(() => read(moment, index))) * 1000);
  }
  return took;
}

async function momentOf(store: EventStore, run: number, isInstant: boolean): Promise<PointInTime> {
  if (isInstant) return { kind: 'instant', at: timeOf(run, 2) };
  const stream = streams.run(nameBasedId('bench', String(run)));
  const [last] = await store.readStream(stream, { direction: 'backwards', limit: 1 });
  return { kind: 'position', position: last?.position ?? '' };
}

/** Whole numbers below a bound, in no visible order. */
const spread = (index: number, bound: number): number => (index * 7_919 + 13) % bound;

/** Makes a task with a stream of fires, unless it exists. Returns its id. */
async function makeTask(store: EventStore, fires: number): Promise<string> {
  const id = nameBasedId('bench', 'the task');
  if ((await store.readStream(streams.task(id), { limit: 1 })).length === 0) {
    await appendAll(store, taskAppends(id, fires), 500);
  }
  return id;
}

function* taskAppends(id: string, fires: number): Generator<StreamAppend> {
  const definition = {
    ...taskDefaults,
    title: 'measured',
    description: 'a task that has fired for long',
    tags: [],
    schedule_kind: 'cron' as const,
    schedule_expr: '* * * * *',
    created_by: nameBasedId('bench', 'owner'),
    payload: { pipeline: [{ uses: 'echo', with: { text: 'x' } }] },
  };
  const created: DomainEvent = {
    type: 'TaskCreated',
    data: { definition, anchor: timeOf(0, 0), next_fire_at: timeOf(0, 0) },
  };
  yield appendOf(streams.task(id), 0, created, timeOf(0, 0));
  for (let fire = 0; fire < fires; fire += 1) {
    const nominal = timeOf(fire * EVENTS_PER_FIRE, 0);
    const event: DomainEvent = {
      type: 'Fired',
      data: {
        nominal,
        task_revision: 0,
        fire_count: fire + 1,
        run_id: nameBasedId('bench', 'fire', String(fire)),
        next_fire_at: timeOf((fire + 1) * EVENTS_PER_FIRE, 0),
      },
    };
    yield appendOf(streams.fires(id), fire, event, nominal);
  }
}
