import { fromIso } from '../../domain/clock.ts';
import type { RecordedEvent } from '../../domain/event-store.ts';
import type { DataOf } from '../../domain/events/catalogue.ts';
import type { JsonObject } from '../../domain/json.ts';
import { addDuration, withDuration, type Histogram } from './histogram.ts';
import { EVERY_NAMESPACE, within, type Reach } from '../reach.ts';
import type { Filter, Projection, Query } from '../read-model.ts';
import { withinNamespaces } from './namespaced.ts';

/** Runs that succeeded or failed on one day, UTC: of one task, or of all. */
export type DayDocument = JsonObject & {
  /** The task's id, or {@link ALL}. */
  readonly scope: string;
  /** Left out in `default`. */
  readonly namespace?: string;
  /** `YYYY-MM-DD`. */
  readonly day: string;
  readonly total: number;
  readonly successful: number;
  readonly failed: number;
  /** Sum over the runs in milliseconds, each from its first start to its end. */
  readonly execution_ms: number;
  readonly histogram: Histogram;
  readonly last_run: string | null;
  readonly last_success: string | null;
  readonly last_failure: string | null;
};

/** The last day on which a run of a task ended, so that a summary counts tasks without grouping. */
export type LastDayDocument = JsonObject & {
  readonly scope: typeof TASKS;
  /** Left out in `default`. */
  readonly namespace?: string;
  /** Empty if unknown. */
  readonly day: string;
  /** The latest start of its removed runs; missing if none was removed. */
  readonly removed_start?: string;
};

export type StatisticsDocument = DayDocument | LastDayDocument;

/** Scope of the days of all tasks of a namespace together. */
const ALL = 'all';
/** Scope of the documents with the last day of each task. */
const TASKS = 'tasks';

/** Days that a summary of every namespace reads at most. */
const MAX_DAYS_OF_ALL = 40_000;

/** Counters and histograms per day, per task and per namespace; never computed by reading runs. */
export const statisticsProjection: Projection<StatisticsDocument> = {
  name: 'statistics',
  schema: 2,
  // Schema 1 cannot be asked for a namespace.
  readsOlder: [1],
  addedFields: { namespace: 2 },
  streams: ['run-', 'kept-'],
  fields: { namespace: 'text', scope: 'text', day: 'text' },
  indexes: withinNamespaces([['scope', 'day']]),
  covered: [['namespace'], []],
  sparse: ['namespace'],
  keys(event) {
    if (event.type === 'StatisticsKept') {
      const { day, figures } = event.data;
      const tasks = figures.map(({ scope }) => scope).filter((scope) => scope !== ALL);
      return [...figures.map((each) => dayKey(each, day)), ...tasks.map(lastDayKey)];
    }
    if (event.type === 'RunRemoved') {
      const { started } = event.data;
      return started === undefined ? [] : [lastDayKey(started.task_id)];
    }
    if (event.type !== 'RunSucceeded' && event.type !== 'RunFailed') return [];
    const day = dayOf(event.metadata.occurredAt);
    const { task_id, namespace } = event.data;
    return [dayKey({ scope: ALL, namespace }, day), `${task_id}/${day}`, lastDayKey(task_id)];
  },
  evolve(document, event, key, own = false) {
    if (event.type === 'StatisticsKept') return keptFigures(document, event.data, key);
    if (event.type === 'RunRemoved') return withRemoved(document, event.data);
    if (event.type !== 'RunSucceeded' && event.type !== 'RunFailed') return document;
    const { namespace } = event.data;
    const slash = key.indexOf('/');
    const scope = key.slice(0, slash);
    const day = dayOf(event.metadata.occurredAt);
    if (scope === TASKS) return evolveLastDay(document, day, namespace);
    const ownScope = scope === event.data.task_id ? scope : ALL;
    const present = document ?? emptyDay(ownScope, day, namespace);
    return evolveDay(present as DayDocument, event, own);
  },
};

/** The days of one task, from a day on, ascending; at most 400. */
export function daysOfTask(taskId: string, firstDay: string): Query {
  return daysOfScope(EVERY_NAMESPACE, taskId, firstDay);
}

/** The days of all tasks, from a day on, ascending. Of several namespaces, each has its own. */
export function daysOfAll(reach: Reach, firstDay: string): Query {
  return daysOfScope(reach, ALL, firstDay);
}

function daysOfScope(reach: Reach, scope: string, firstDay: string): Query {
  return {
    filters: scopeSince(reach, scope, firstDay),
    sort: [{ field: 'day', direction: 'ascending' }],
    limit: scope === ALL && reach === EVERY_NAMESPACE ? MAX_DAYS_OF_ALL : 400,
  };
}

/** Selects the tasks of which a run ended on or after a day. */
export function tasksExecutedSince(reach: Reach, firstDay: string): readonly Filter[] {
  return scopeSince(reach, TASKS, firstDay);
}

/** The key of a {@link LastDayDocument}. */
export function lastDayKey(taskId: string): string {
  return `${TASKS}/${taskId}`;
}

/** A day without runs. */
export function emptyDay(scope: string, day: string, namespace?: string): DayDocument {
  const none = { total: 0, successful: 0, failed: 0, execution_ms: 0, histogram: {} };
  const place = namespace === undefined ? {} : { namespace };
  return { scope, day, ...place, ...none, last_run: null, last_success: null, last_failure: null };
}

/** The key of a day. */
function dayKey(
  { scope, namespace }: { readonly scope: string; readonly namespace?: string | undefined },
  day: string,
): string {
  return scope === ALL && namespace !== undefined
    ? `${ALL}@${namespace}/${day}`
    : `${scope}/${day}`;
}

/** The UTC day of a timestamp as the service writes it. */
export function dayOf(timestamp: string): string {
  return timestamp.slice(0, 10);
}

function evolveDay(day: DayDocument, event: RecordedEvent & EndedEvent, own: boolean): DayDocument {
  const finished = event.metadata.occurredAt;
  // Clocks of two workers may differ a little.
  const took = Math.max(0, fromIso(finished) - fromIso(event.data.started_at));
  const succeeded = event.type === 'RunSucceeded';
  const { scope, day: date, total, successful, failed, last_success, last_failure } = day;
  // Written out, without a spread: runs twice per run, and keeps all days of one shape.
  const next: DayDocument = {
    scope,
    day: date,
    total: total + 1,
    successful: successful + (succeeded ? 1 : 0),
    failed: failed + (succeeded ? 0 : 1),
    execution_ms: day.execution_ms + took,
    histogram: own ? addDuration(day.histogram, took) : withDuration(day.histogram, took),
    last_run: later(day.last_run, finished),
    last_success: succeeded ? later(last_success, finished) : last_success,
    last_failure: succeeded ? last_failure : later(last_failure, finished),
  };
  return day.namespace === undefined ? next : { ...next, namespace: day.namespace };
}

/**
 * The figures of a day before its runs were removed. They replace whatever was counted: nothing in a rebuilt view, all
 * in one that followed.
 */
function keptFigures(
  document: StatisticsDocument | null,
  { day, figures }: DataOf<'StatisticsKept'>,
  key: string,
): StatisticsDocument | null {
  // Written even if unchanged, so that its position is the same as in a rebuilt view.
  const ofTask = figures.find(({ scope }) => key === lastDayKey(scope));
  if (ofTask !== undefined) return { ...evolveLastDay(document, day, ofTask.namespace) };
  const kept = figures.find((each) => key === dayKey(each, day));
  if (kept === undefined) return document;
  const known = document as DayDocument | null;
  return known !== null && known.total > kept.total
    ? known
    : // The histogram is the event's own: what is counted on here must not change it.
      { day, ...kept, histogram: { ...kept.histogram } };
}

type EndedEvent = Extract<RecordedEvent, { type: 'RunSucceeded' | 'RunFailed' }>;

/** Returns the same document while the day stays: the projector then writes nothing. */
function evolveLastDay(
  document: StatisticsDocument | null,
  day: string,
  namespace: string | undefined,
): StatisticsDocument {
  if (document !== null && document.day >= day) return document;
  const place = namespace === undefined ? {} : { namespace };
  return { ...document, ...place, scope: TASKS, day };
}

/** While runs are in the log, they themselves say when a task ran. */
function withRemoved(
  document: StatisticsDocument | null,
  { started }: DataOf<'RunRemoved'>,
): StatisticsDocument | null {
  if (started === undefined) return document;
  const known = (document as LastDayDocument | null) ?? { scope: TASKS, day: '' };
  const { removed_start = '' } = known;
  return removed_start >= started.at ? document : { ...known, removed_start: started.at };
}

function later(one: string | null, other: string): string {
  return one !== null && one > other ? one : other;
}

function scopeSince(reach: Reach, scope: string, firstDay: string): readonly Filter[] {
  return [
    ...within(reach),
    { field: 'scope', op: 'eq', value: scope },
    { field: 'day', op: 'gte', value: firstDay },
  ];
}
