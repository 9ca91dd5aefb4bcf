import { fromIso } from '../../domain/clock.ts';
import type { RecordedEvent } from '../../domain/event-store.ts';
import type { DataOf } from '../../domain/events/catalogue.ts';
import type { JsonObject } from '../../domain/json.ts';
import { addDuration, withDuration, type Histogram } from './histogram.ts';
import type { Filter, Projection, Query } from '../read-model.ts';

/** Runs that succeeded or failed on one day, UTC: of one task, or of all. */
export type DayDocument = JsonObject & {
  /** The task's id, or {@link ALL}. */
  readonly scope: string;
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
  /** Empty if unknown. */
  readonly day: string;
  /** The latest start of its removed runs; missing if none was removed. */
  readonly removed_start?: string;
};

export type StatisticsDocument = DayDocument | LastDayDocument;

/** Scope of the days of all tasks together. */
const ALL = 'all';
/** Scope of the documents with the last day of each task. */
const TASKS = 'tasks';

/** Counters and histograms per day, per task and overall; never computed by reading runs. */
export const statisticsProjection: Projection<StatisticsDocument> = {
  name: 'statistics',
  schema: 1,
  streams: ['run-', 'kept-'],
  fields: { scope: 'text', day: 'text' },
  indexes: [['scope', 'day']],
  keys(event) {
    if (event.type === 'StatisticsKept') {
      const { day, figures } = event.data;
      const scopes = figures.map(({ scope }) => scope);
      const tasks = scopes.filter((scope) => scope !== ALL).map(lastDayKey);
      return [...scopes.map((scope) => `${scope}/${day}`), ...tasks];
    }
    if (event.type === 'RunRemoved') {
      const { started } = event.data;
      return started === undefined ? [] : [lastDayKey(started.task_id)];
    }
    if (event.type !== 'RunSucceeded' && event.type !== 'RunFailed') return [];
    const day = dayOf(event.metadata.occurredAt);
    const { task_id } = event.data;
    return [`${ALL}/${day}`, `${task_id}/${day}`, lastDayKey(task_id)];
  },
  evolve(document, event, key, own = false) {
    if (event.type === 'StatisticsKept') return keptFigures(document, event.data, key);
    if (event.type === 'RunRemoved') return withRemoved(document, event.data);
    if (event.type !== 'RunSucceeded' && event.type !== 'RunFailed') return document;
    const slash = key.indexOf('/');
    const scope = key.slice(0, slash);
    if (scope === TASKS) return evolveLastDay(document, dayOf(event.metadata.occurredAt));
    const present = document ?? emptyDay(scope, key.slice(slash + 1));
    return evolveDay(present as DayDocument, event, own);
  },
};

/** The days of one task, or of all (null), from a day on, ascending; at most 400. */
export function daysSince(taskId: string | null, firstDay: string): Query {
  return {
    filters: scopeSince(taskId ?? ALL, firstDay),
    sort: [{ field: 'day', direction: 'ascending' }],
    limit: 400,
  };
}

/** Selects the tasks of which a run ended on or after a day. */
export function tasksExecutedSince(firstDay: string): readonly Filter[] {
  return scopeSince(TASKS, firstDay);
}

/** The key of a {@link LastDayDocument}. */
export function lastDayKey(taskId: string): string {
  return `${TASKS}/${taskId}`;
}

/** A day without runs. */
export function emptyDay(scope: string, day: string): DayDocument {
  const none = { total: 0, successful: 0, failed: 0, execution_ms: 0, histogram: {} };
  return { scope, day, ...none, last_run: null, last_success: null, last_failure: null };
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
  return {
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
  const [scope = ''] = key.split('/');
  // Written even if unchanged, so that its position is the same as in a rebuilt view.
  if (scope === TASKS) return { ...evolveLastDay(document, day) };
  const kept = figures.find((each) => each.scope === scope);
  if (kept === undefined) return document;
  const known = document as DayDocument | null;
  return known !== null && known.total > kept.total
    ? known
    : // The histogram is the event's own: what is counted on here must not change it.
      { day, ...kept, histogram: { ...kept.histogram } };
}

type EndedEvent = Extract<RecordedEvent, { type: 'RunSucceeded' | 'RunFailed' }>;

/** Returns the same document while the day stays: the projector then writes nothing. */
function evolveLastDay(document: StatisticsDocument | null, day: string): StatisticsDocument {
  return document !== null && document.day >= day ? document : { ...document, scope: TASKS, day };
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

function scopeSince(scope: string, firstDay: string): readonly Filter[] {
  return [
    { field: 'scope', op: 'eq', value: scope },
    { field: 'day', op: 'gte', value: firstDay },
  ];
}
