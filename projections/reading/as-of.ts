import { fromIso, toIso } from '../../domain/clock.ts';
import {
  sound,
  type EventStore,
  type Position,
  type RecordedEvent,
} from '../../domain/event-store.ts';
import type { JsonObject } from '../../domain/json.ts';
import { streams } from '../../domain/streams.ts';
import type { KeptDocument, Projection, Query, ReadModel } from '../read-model.ts';
import { SKEW } from './position-at.ts';
import { latestStartedRunOf } from './run-queries.ts';
import { runsProjection, type RunDocument } from '../views/runs.ts';
import { lastDayKey, statisticsProjection, type LastDayDocument } from '../views/statistics.ts';
import { tasksProjection, type TaskDocument } from '../views/tasks.ts';

/**
 * A moment of the past. An instant is everything up to the last event of the record's own streams that occurred at or
 * before it: clocks of several machines differ a little, the order of the log does not.
 */
export type Moment =
  | { readonly kind: 'instant'; readonly at: string }
  | { readonly kind: 'position'; readonly position: Position };

/** Events of a stream that are read at a time. */
const PAGE = 500;

/**
 * The last events of `fires-<task>` that a task's document is folded from. Each says all that the document takes of
 * it, but for a correction, which decides nothing: so many of them in a row there are not.
 */
const LAST_FIRES = 20;

/** Runs that are read at a time for the one that started last before a position. */
const CANDIDATES = 20;

/**
 * A record of one stream as it was at a moment, by the same folding that makes its view.
 * @returns null where it was not there (yet, or any more)
 * @throws EventStoreError `CORRUPT_EVENT` for an event up to that moment, `UNAVAILABLE`
 */
export async function documentAsOf<D extends JsonObject>(
  store: EventStore,
  projection: Projection<D>,
  stream: string,
  id: string,
  moment: Moment,
): Promise<D | null> {
  const events = upTo(await wholeStream(store, stream), moment);
  return events
    .map(sound)
    .reduce<D | null>((document, event) => projection.evolve(document, event, id), null);
}

/** A task as it was at a moment; null where it was not there yet. Reads its rhythm by halves, not from the start. */
export async function taskAsOf(
  store: EventStore,
  id: string,
  moment: Moment,
): Promise<TaskDocument | null> {
  const changes = await wholeStream(store, streams.task(id));
  const fire = await lastFire(store, id, (event) => isWithin(event, moment));
  // The streams of a task are one record: what came before the last of their events counts, in either.
  const end = [upTo(changes, moment).at(-1)?.position ?? '', fire?.position ?? ''].sort().at(-1);
  const task = changes
    .filter(({ position }) => position <= (end ?? ''))
    .map(sound)
    .reduce<TaskDocument | null>((document, event) => evolve(document, event, id), null);
  return withFiresUpTo(store, task, id, end ?? '');
}

/** A task with what its `fires-` says up to a position. Other than that it stays as it is. */
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

/** When a task had last started to run at a moment, by whatever trigger; null where it had not. */
export async function lastRunAsOf(
  { store, readModel }: { readonly store: EventStore; readonly readModel: ReadModel },
  taskId: string,
  moment: Moment,
): Promise<string | null> {
  const query = latestStartedRunOf(taskId);
  if (moment.kind === 'instant') {
    const [run] = await readModel.find(runsProjection, startedUpTo(query, moment.at));
    return run?.document.started_at ?? removedStart(readModel, taskId, moment.at);
  }
  const [next] = await store.readAll(moment.position, 1);
  const [last] = await store.readAllBackwards(next?.position ?? null, 1);
  const lastAt = last?.metadata.occurredAt ?? '';
  // Times do not go by the order of the log: what comes next may have been decided before a start that is counted.
  const latest = latestOf(lastAt, next?.metadata.occurredAt ?? '');
  const bound = latest === '' ? query : startedUpTo(query, toIso(fromIso(latest) + SKEW));
  for await (const { key, document } of pagesOf(readModel, { ...bound, limit: CANDIDATES })) {
    const events = await store.readStream(streams.run(key), { limit: PAGE, faulty: true });
    const started = events.find(({ type }) => type === 'RunStarted');
    if (started !== undefined && started.position <= moment.position) return document.started_at;
  }
  return removedStart(readModel, taskId, lastAt);
}

/** Runs by a query, the first of it first: a page at a time, for as long as they are asked for. */
async function* pagesOf(
  readModel: ReadModel,
  query: Query,
): AsyncGenerator<KeptDocument<RunDocument>> {
  let page = await readModel.find(runsProjection, query);
  for (;;) {
    yield* page;
    const last = page.at(-1);
    if (last === undefined || page.length < query.limit) return;
    const after = { values: [last.document.queued_at], key: last.key };
    page = await readModel.find(runsProjection, { ...query, after });
  }
}

const latestOf = (one: string, other: string): string => (one > other ? one : other);

/** When the last of a task's runs began that were taken out of the log; null where that was after an instant. */
async function removedStart(
  readModel: ReadModel,
  taskId: string,
  at: string,
): Promise<string | null> {
  const removed = await readModel.get(statisticsProjection, lastDayKey(taskId));
  const { removed_start = null } = (removed?.document ?? {}) as Partial<LastDayDocument>;
  return removed_start !== null && removed_start <= at ? removed_start : null;
}

/** The runs are in the order of their queueing, and none starts before it: those queued later need not be looked at. */
function startedUpTo(query: Query, at: string): Query {
  const until = (field: string) => ({ field, op: 'lte', value: at }) as const;
  return { ...query, filters: [...query.filters, until('started_at'), until('queued_at')] };
}

const evolve: typeof tasksProjection.evolve = (...given) => tasksProjection.evolve(...given);

const isWithin = ({ position, metadata }: RecordedEvent, moment: Moment): boolean =>
  moment.kind === 'position' ? position <= moment.position : metadata.occurredAt <= moment.at;

function upTo(events: readonly RecordedEvent[], moment: Moment): readonly RecordedEvent[] {
  return events.slice(0, events.findLastIndex((event) => isWithin(event, moment)) + 1);
}

/** The last event of a task's `fires-` for which something holds that holds for all before it; by halves. */
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

/** With what of it can't be read: that may be of later. */
async function wholeStream(store: EventStore, stream: string): Promise<readonly RecordedEvent[]> {
  const events: RecordedEvent[] = [];
  for (;;) {
    const from = (events.at(-1)?.revision ?? -1) + 1;
    const page = await store.readStream(stream, { from, limit: PAGE, faulty: true });
    events.push(...page);
    if (page.length < PAGE) return events;
  }
}
