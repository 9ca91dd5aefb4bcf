import type { RecordedEvent } from '../../domain/event-store.ts';
import type { DataOf } from '../../domain/events/catalogue.ts';
import type { JsonObject } from '../../domain/json.ts';
import { wellFormed } from '../../domain/pipeline/well-formed.ts';
import { errorGroupOf } from '../../domain/runs/error-group.ts';
import { idOf } from '../../domain/streams.ts';
import { dayOf, later, quarterOf, withQuarter, type Quarters } from './statistics-days.ts';

/** Scope of the documents with the failures of an error. */
export const ERRORS = 'errors';

/** The most tasks named for a quarter hour of an error. */
const MAX_TASKS = 30;

/** The most characters of the message that represents a group. */
const MAX_EXAMPLE = 500;

/** Failures of one error in a quarter of an hour. */
export type FailedQuarter = {
  readonly count: number;
  readonly first: string;
  readonly last: string;
  /** The run that failed last. */
  readonly run: string;
  /** How often the runs of each task failed. */
  readonly tasks: { readonly [taskId: string]: number };
  /** Failures of the other tasks; left out if 0. */
  readonly others?: number;
};

/** The failed runs of one error group on one UTC day in one namespace. */
export type ErrorDayDocument = JsonObject & {
  readonly scope: typeof ERRORS;
  /** Left out in `default`. */
  readonly namespace?: string;
  readonly day: string;
  /** The group's id. */
  readonly group: string;
  /** The group's text. */
  readonly error: string;
  /** The first message of the day, cut. */
  readonly example: string;
  readonly total: number;
  readonly quarters: Quarters<FailedQuarter>;
};

export type FailedEvent = Extract<RecordedEvent, { type: 'RunFailed' }>;

/** The key of an {@link ErrorDayDocument}. */
export function errorKey(
  { group, namespace }: { readonly group: string; readonly namespace?: string | undefined },
  day: string,
): string {
  const scope = namespace === undefined ? ERRORS : `${ERRORS}@${namespace}`;
  return `${scope}/${group}/${day}`;
}

/** The key of the document that counts a failure. */
export function keyOfFailure({ data, metadata }: FailedEvent): string {
  const { id: group } = errorGroupOf(data.error);
  return errorKey({ group, namespace: data.namespace }, dayOf(metadata.occurredAt));
}

/** The error's day with one more failure. @param own whether it may be changed in place */
export function errorWithFailure(
  document: ErrorDayDocument | null,
  event: FailedEvent,
  own: boolean,
): ErrorDayDocument {
  const at = event.metadata.occurredAt;
  const { task_id: task } = event.data;
  const present = document ?? emptyErrorDay(event);
  const number = quarterOf(at);
  const before = present.quarters[number];
  const isLatest = before === undefined || at >= before.last;
  const isNamed =
    before?.tasks[task] !== undefined || Object.keys(before?.tasks ?? {}).length < MAX_TASKS;
  const others = (before?.others ?? 0) + (isNamed ? 0 : 1);
  const quarter: FailedQuarter = {
    count: (before?.count ?? 0) + 1,
    first: before === undefined || at < before.first ? at : before.first,
    last: later(before?.last ?? null, at),
    run: isLatest ? idOf(event.stream) : before.run,
    tasks: isNamed
      ? { ...before?.tasks, [task]: (before?.tasks[task] ?? 0) + 1 }
      : (before?.tasks ?? {}),
    ...(others === 0 ? {} : { others }),
  };
  const quarters = withQuarter(present.quarters, number, quarter, own);
  return { ...present, total: present.total + 1, quarters };
}

/** The figures of an error's day before its runs were removed. */
export function keptError(
  document: ErrorDayDocument | null,
  day: string,
  kept: Extract<DataOf<'StatisticsKept'>['figures'][number], { group: string }>,
): ErrorDayDocument {
  return document !== null && document.total > kept.total
    ? document
    : { day, ...kept, quarters: { ...kept.quarters } };
}

function emptyErrorDay({ data, metadata }: FailedEvent): ErrorDayDocument {
  const { id: group, text: error } = errorGroupOf(data.error);
  const { namespace } = data;
  return {
    scope: ERRORS,
    ...(namespace === undefined ? {} : { namespace }),
    day: dayOf(metadata.occurredAt),
    group,
    error,
    example: wellFormed(data.error.slice(0, MAX_EXAMPLE)),
    total: 0,
    quarters: {},
  };
}
