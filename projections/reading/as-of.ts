import { fromIso, toIso } from '../../domain/clock.ts';
import {
  requireReadable,
  type EventStore,
  type Position,
  type RecordedEvent,
} from '../../domain/event-store.ts';
import type { JsonObject } from '../../domain/json.ts';
import { streams } from '../../domain/streams.ts';
import type { Projection, Query, ReadModel } from '../read-model.ts';
import { pagesOf } from './pages.ts';
import { MAX_CLOCK_SKEW_MS } from './position-at.ts';
import { latestStartedRunOf } from './run-queries.ts';
import { runsProjection } from '../views/runs.ts';
import { statisticsProjection } from '../views/statistics.ts';
import { lastDayKey, type LastDayDocument } from '../views/statistics-tasks.ts';
import { tasksProjection, type TaskDocument } from '../views/tasks.ts';

/**
 * A point in the past. An instant includes all events up to the last event of the record's own streams that occurred at
 * or before the instant. Clocks of machines differ, but the order of the log is fixed.
 */
export type PointInTime =
  | { readonly kind: 'instant'; readonly at: string }
  | { readonly kind: 'position'; readonly position: Position };

const PAGE = 500;

/**
 * The last events of `fires-<task>` that a task's document is folded from. Each event carries everything that the
 * document needs, except corrections. There are never this many corrections in a row.
 */
const LAST_FIRES = 20;

/** Runs per read in the search for the run that started last before a position. */
const CANDIDATES = 20;

/**
 * A record of one stream as of a point in time, by the same fold as its view.
 * @returns null if it did not exist then
 * @throws EventStoreError `CORRUPT_EVENT` for an event up to that time, `UNAVAILABLE`
 */
export async function documentAsOf<D extends JsonObject>(
  store: EventStore,
  projection: Projection<D>,
  stream: string,
  id: string,
  point: PointInTime,
): Promise<D | null> {
  const events = upTo(await wholeStream(store, stream), point);
  return events
    .map(requireReadable)
    .reduce<D | null>((document, event) => projection.evolve(document, event, id), null);
}

/** A task as of a point in time; null if it did not exist then. Finds its fires by binary search. */
export async function taskAsOf(
  store: EventStore,
  id: string,
  point: PointInTime,
): Promise<TaskDocument | null> {
  const changes = await wholeStream(store, streams.task(id));
  const fire = await lastFire(store, id, (event) => isWithin(event, point));
  // Both streams of a task are one record: everything before the last included event of either counts.
  const end = [upTo(changes, point).at(-1)?.position ?? '', fire?.position ?? ''].sort().at(-1);
  const task = changes
    .filter(({ position }) => position <= (end ?? ''))
    .map(requireReadable)
    .reduce<TaskDocument | null>((document, event) => evolve(document, event, id), null);
  return withFiresUpTo(store, task, id, end ?? '');
}

/** A task with its `fires-` events up to a position folded in. */
export async function withFiresUpTo(
  store: EventStore,
  task: TaskDocument | null,
  id: string,
  position: Position,
): Promise<TaskDocument | null> {
  if (task === null) return null;
  const last = await lastFire(store, id, (event) => event.position <= position);
  if (last === null) return task;
  const options = { from: last.revision, direction: 'backwards', limit: LAST_FIRES } as const;
  const fires = await store.readStream(streams.fires(id), options);
  return fires.reduceRight<TaskDocument | null>(
    (document, event) => evolve(document, event, id),
    task,
  );
}

/** When a task had last started to run, by any trigger; null if it had not. */
export async function lastRunAsOf(
  { store, readModel }: { readonly store: EventStore; readonly readModel: ReadModel },
  taskId: string,
  point: PointInTime,
): Promise<string | null> {
  const query = latestStartedRunOf(taskId);
  if (point.kind === 'instant') {
    const [run] = await readModel.find(runsProjection, startedUpTo(query, point.at));
    return run?.document.started_at ?? removedStart(readModel, taskId, point.at);
  }
  const [next] = await store.readAll(point.position, 1);
  const [last] = await store.readAllBackwards(next?.position ?? null, 1);
  const lastAt = last?.metadata.occurredAt ?? '';
  // Times do not follow the order of the log: the next event may have been decided before a start
  // that must be included.
  const nextAt = next?.metadata.occurredAt ?? '';
  const latest = lastAt > nextAt ? lastAt : nextAt;
  const bound =
    latest === '' ? query : startedUpTo(query, toIso(fromIso(latest) + MAX_CLOCK_SKEW_MS));
  const pages = pagesOf(readModel, runsProjection, { ...bound, limit: CANDIDATES });
  for await (const page of pages) {
    for (const { key, document } of page) {
      const events = await store.readStream(streams.run(key), { limit: PAGE, faulty: true });
      const started = events.find(({ type }) => type === 'RunStarted');
      if (started !== undefined && started.position <= point.position) return document.started_at;
    }
  }
  return removedStart(readModel, taskId, lastAt);
}

/** The latest start among a task's removed runs; null if that start is after the instant. */
async function removedStart(
  readModel: ReadModel,
  taskId: string,
  at: string,
): Promise<string | null> {
  const removed = await readModel.get(statisticsProjection, lastDayKey(taskId));
  const { removed_start = null } = (removed?.document ?? {}) as Partial<LastDayDocument>;
  return removed_start !== null && removed_start <= at ? removed_start : null;
}

/** Runs are sorted by the time they were queued, and no run starts before it was queued. So later runs are left out. */
function startedUpTo(query: Query, at: string): Query {
  const until = (field: string) => ({ field, op: 'lte', value: at }) as const;
  return { ...query, filters: [...query.filters, until('started_at'), until('queued_at')] };
}

const evolve: typeof tasksProjection.evolve = (...given) => tasksProjection.evolve(...given);

const isWithin = ({ position, metadata }: RecordedEvent, point: PointInTime): boolean =>
  point.kind === 'position' ? position <= point.position : metadata.occurredAt <= point.at;

function upTo(events: readonly RecordedEvent[], point: PointInTime): readonly RecordedEvent[] {
  return events.slice(0, events.findLastIndex((event) => isWithin(event, point)) + 1);
}

/**
 * Finds, by binary search, the last event of a task's `fires-` stream that meets a condition. All earlier events must
 * meet it too.
 */
async function lastFire(
  store: EventStore,
  id: string,
  holds: (event: RecordedEvent) => boolean,
): Promise<RecordedEvent | null> {
  const stream = streams.fires(id);
  const at = async (from: number): Promise<RecordedEvent | undefined> =>
    (await store.readStream(stream, { from, limit: 1 }))[0];
  const [last] = await store.readStream(stream, { direction: 'backwards', limit: 1 });
  if (last === undefined || holds(last)) return last ?? null;
  let low = await at(0);
  if (low === undefined || !holds(low)) return null;
  for (let high = last.revision; high - low.revision > 1;) {
    const middle = await at(Math.floor((low.revision + high) / 2));
    if (middle === undefined) break;
    if (holds(middle)) low = middle;
    else high = middle.revision;
  }
  return low;
}

/** Includes unreadable events, which may be later than requested. */
async function wholeStream(store: EventStore, stream: string): Promise<readonly RecordedEvent[]> {
  const events: RecordedEvent[] = [];
  for (;;) {
    const from = (events.at(-1)?.revision ?? -1) + 1;
    const page = await store.readStream(stream, { from, limit: PAGE, faulty: true });
    events.push(...page);
    if (page.length < PAGE) return events;
  }
}
