import type { DataOf } from '../../domain/events/catalogue.ts';
import { EVERY_NAMESPACE, within, type Reach } from '../reach.ts';
import type { Filter, Projection, Query } from '../read-model.ts';
import { withinNamespaces } from './namespaced.ts';
import { dayOf, emptyDay, withEnded, withSkipped, type DayDocument } from './statistics-days.ts';
import {
  ERRORS,
  errorKey,
  errorWithFailure,
  keptError,
  keyOfFailure,
  type ErrorDayDocument,
} from './statistics-errors.ts';
import {
  TASKS,
  lastDayKey,
  taskWithEnded,
  taskWithKept,
  taskWithRemoved,
  taskWithSkipped,
  type LastDayDocument,
} from './statistics-tasks.ts';

export type StatisticsDocument = DayDocument | LastDayDocument | ErrorDayDocument;

/** Scope of the days of all tasks of a namespace together. */
const ALL = 'all';

/** The most days that a summary of all namespaces reads. */
const MAX_DAYS_OF_ALL = 40_000;

/** Counters and histograms per quarter hour and day, per task, error and namespace; never computed by reading runs. */
export const statisticsProjection: Projection<StatisticsDocument> = {
  name: 'statistics',
  schema: 4,
  // Schema 1 cannot be filtered by namespace. Schema 2 lacks quarter hours, errors, and the last days of tasks. Schema 3
  // lacks the durations of the latest runs of each task.
  readsOlder: [1, 2, 3],
  addedFields: { namespace: 2, failing: 3, failed_day: 3, skipped_day: 3, p95_ms: 4 },
  streams: ['run-', 'kept-'],
  fields: {
    namespace: 'text',
    scope: 'text',
    day: 'text',
    failing: 'text',
    failed_day: 'text',
    skipped_day: 'text',
    // It has no index because it changes with almost every run.
    p95_ms: 'number',
  },
  indexes: withinNamespaces([
    ['scope', 'day'],
    ['scope', 'failing'],
    ['scope', 'failed_day'],
    ['scope', 'skipped_day'],
  ]),
  covered: [['namespace'], ['namespace'], ['namespace'], ['namespace'], [], [], [], []],
  sparse: ['namespace', 'failing', 'failed_day', 'skipped_day'],
  keys(event) {
    switch (event.type) {
      case 'StatisticsKept': {
        const { day, figures } = event.data;
        return figures.flatMap((each) => [keyOfKept(each, day), ...taskKeysOf(each)]);
      }
      case 'RunRemoved': {
        const { started } = event.data;
        return started === undefined ? [] : [lastDayKey(started.task_id)];
      }
      case 'RunSucceeded':
      case 'RunSkipped':
        return keysOfRun(event.data, event.metadata.occurredAt);
      case 'RunFailed':
        return [...keysOfRun(event.data, event.metadata.occurredAt), keyOfFailure(event)];
      default:
        return [];
    }
  },
  evolve(document, event, key, own = false) {
    const task = document as LastDayDocument | null;
    if (event.type === 'StatisticsKept') return keptFigures(document, event.data, key);
    if (event.type === 'RunRemoved') return taskWithRemoved(task, event.data);
    const isEnd = event.type === 'RunSucceeded' || event.type === 'RunFailed';
    if (!isEnd && event.type !== 'RunSkipped') return document;
    const prefix = key.slice(0, key.indexOf('/'));
    if (prefix === TASKS) {
      return isEnd ? taskWithEnded(task, event) : taskWithSkipped(task, event);
    }
    const { namespace, task_id } = event.data;
    if (event.type === 'RunFailed' && (prefix === ERRORS || prefix.startsWith(`${ERRORS}@`))) {
      return errorWithFailure(document as ErrorDayDocument | null, event, own);
    }
    const at = event.metadata.occurredAt;
    const scope = prefix === task_id ? prefix : ALL;
    const present = (document as DayDocument | null) ?? emptyDay(scope, dayOf(at), namespace);
    return isEnd ? withEnded(present, event, own) : withSkipped(present, at, own);
  },
};

/** The days of one task, from a day on, ascending; at most 400. */
export function daysOfTask(taskId: string, firstDay: string): Query {
  return daysOfScope(EVERY_NAMESPACE, taskId, firstDay);
}

/** The days of all tasks, from a day on, ascending. Each namespace has its own days. */
export function daysOfAll(reach: Reach, firstDay: string): Query {
  return daysOfScope(reach, ALL, firstDay);
}

/** The days of errors, from a day on, the latest first. */
export function daysOfErrors(reach: Reach, firstDay: string, limit: number): Query {
  const sort = [{ field: 'day', direction: 'descending' }] as const;
  return { filters: scopeSince(reach, ERRORS, firstDay), sort, limit };
}

/** Selects the tasks with a run that ended on or after a day. */
export function tasksExecutedSince(reach: Reach, firstDay: string): readonly Filter[] {
  return scopeSince(reach, TASKS, firstDay);
}

/** Selects the tasks with a run that ended, failed or was skipped on or after a day, depending on the field. */
export function tasksSince(
  reach: Reach,
  field: 'day' | 'failed_day' | 'skipped_day',
  firstDay: string,
): readonly Filter[] {
  return [...ofTasks(reach), { field, op: 'gte', value: firstDay }];
}

/** Selects the tasks whose latest run failed at or after a time. */
export function tasksFailingSince(reach: Reach, at: string): readonly Filter[] {
  return [...ofTasks(reach), { field: 'failing', op: 'gte', value: at }];
}

/** Selects the figures of each task. */
export function statisticsOfTasks(reach: Reach): readonly Filter[] {
  return ofTasks(reach);
}

function daysOfScope(reach: Reach, scope: string, firstDay: string): Query {
  return {
    filters: scopeSince(reach, scope, firstDay),
    sort: [{ field: 'day', direction: 'ascending' }],
    limit: scope === ALL && reach === EVERY_NAMESPACE ? MAX_DAYS_OF_ALL : 400,
  };
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

function keysOfRun(
  { task_id, namespace }: { readonly task_id: string; readonly namespace?: string | undefined },
  at: string,
): readonly string[] {
  const day = dayOf(at);
  return [dayKey({ scope: ALL, namespace }, day), `${task_id}/${day}`, lastDayKey(task_id)];
}

type Kept = DataOf<'StatisticsKept'>['figures'][number];

const keyOfKept = (kept: Kept, day: string): string =>
  'group' in kept ? errorKey(kept, day) : dayKey(kept, day);

const taskKeysOf = (kept: Kept): readonly string[] =>
  'group' in kept || kept.scope === ALL ? [] : [lastDayKey(kept.scope)];

/**
 * The figures of a day before its runs were removed. They replace the counted figures: none in a rebuilt view, all of
 * them in a view that followed the log.
 */
function keptFigures(
  document: StatisticsDocument | null,
  { day, figures }: DataOf<'StatisticsKept'>,
  key: string,
): StatisticsDocument | null {
  for (const kept of figures) {
    if ('group' in kept) {
      if (key === errorKey(kept, day)) {
        return keptError(document as ErrorDayDocument | null, day, kept);
      }
      continue;
    }
    // Written even if unchanged, so that its position is the same as in a rebuilt view.
    if (key === lastDayKey(kept.scope)) {
      return taskWithKept(document as LastDayDocument | null, day, kept);
    }
    if (key !== dayKey(kept, day)) continue;
    const known = document as DayDocument | null;
    if (known !== null && known.total > kept.total) return known;
    // Copied, because the histograms belong to the event and must not change when more runs are counted.
    const { quarters, ...rest } = kept;
    const whole = { day, ...rest, histogram: { ...kept.histogram } };
    return quarters === undefined ? whole : { ...whole, quarters: structuredClone(quarters) };
  }
  return document;
}

function ofTasks(reach: Reach): readonly Filter[] {
  return [...within(reach), { field: 'scope', op: 'eq', value: TASKS }];
}

function scopeSince(reach: Reach, scope: string, firstDay: string): readonly Filter[] {
  return [
    ...within(reach),
    { field: 'scope', op: 'eq', value: scope },
    { field: 'day', op: 'gte', value: firstDay },
  ];
}
