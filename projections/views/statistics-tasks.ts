import { toIso } from '../../domain/clock.ts';
import type { RecordedEvent } from '../../domain/event-store.ts';
import type { DataOf } from '../../domain/events/catalogue.ts';
import type { JsonObject } from '../../domain/json.ts';
import { dayOf, durationOf, later, startOfDay, type EndedEvent } from './statistics-days.ts';

/** Scope of the documents with the figures of each task. */
export const TASKS = 'tasks';

/** UTC days that a task's document has the figures of. */
export const RECENT_DAYS = 33;

const DAY = 86_400_000;

/** One day of a task: ended runs, failed ones, their time in milliseconds, and skipped runs. */
export type RecentDay = readonly [total: number, failed: number, ms: number, skipped: number];

/** The last days of a task, so that a summary counts tasks, and ranks them, without reading each day of each task. */
export type LastDayDocument = JsonObject & {
  readonly scope: typeof TASKS;
  /** Left out in `default`. */
  readonly namespace?: string;
  /** The last UTC day on which a run ended; empty if unknown. */
  readonly day: string;
  /** The latest start of its removed runs; missing if none was removed. */
  readonly removed_start?: string;
  /** By UTC day; those before the last {@link RECENT_DAYS} are left out. */
  readonly recent?: { readonly [day: string]: RecentDay };
  readonly last_success?: string;
  readonly last_failure?: string;
  /** The latest failure, if no success came after it. */
  readonly failing?: string;
  /** The last UTC day on which a run failed; left out for none. */
  readonly failed_day?: string;
  /** The last UTC day on which a run was skipped; left out for none. */
  readonly skipped_day?: string;
};

/** The key of a {@link LastDayDocument}. */
export function lastDayKey(taskId: string): string {
  return `${TASKS}/${taskId}`;
}

/** The task's document after the end of a run. */
export function taskWithEnded(
  document: LastDayDocument | null,
  event: EndedEvent,
): LastDayDocument {
  const at = event.metadata.occurredAt;
  const day = dayOf(at);
  const [total, failed, ms, skipped] = document?.recent?.[day] ?? none;
  const isFailed = event.type === 'RunFailed';
  const figures = [
    total + 1,
    failed + (isFailed ? 1 : 0),
    ms + durationOf(event),
    skipped,
  ] as const;
  const known = placed(document, event.data.namespace);
  return withLast(withRecent({ ...known, day: laterDay(known, day) }, day, figures), {
    last_success: isFailed ? null : at,
    last_failure: isFailed ? at : null,
  });
}

/** The task's document after a skipped run. */
export function taskWithSkipped(
  document: LastDayDocument | null,
  event: Extract<RecordedEvent, { type: 'RunSkipped' }>,
): LastDayDocument {
  const day = dayOf(event.metadata.occurredAt);
  const [total, failed, ms, skipped] = document?.recent?.[day] ?? none;
  const known = placed(document, event.data.namespace);
  const skipped_day = later(known.skipped_day ?? null, day);
  return withRecent({ ...known, skipped_day }, day, [total, failed, ms, skipped + 1]);
}

/** The figures of a day of a task or of all. */
export type KeptDay = Exclude<
  DataOf<'StatisticsKept'>['figures'][number],
  { readonly group: string }
>;

/** The task's document with the figures of a day whose runs were removed. */
export function taskWithKept(
  document: LastDayDocument | null,
  day: string,
  kept: KeptDay,
): LastDayDocument {
  const known = placed(document, kept.namespace);
  const { total, failed, execution_ms, skipped = 0, last_success, last_failure } = kept;
  const before = known.recent?.[day] ?? none;
  const figures: RecentDay =
    before[0] > total ? before : [total, failed, execution_ms, Math.max(skipped, before[3])];
  const ended = total > 0 ? { day: laterDay(known, day) } : {};
  const over = skipped > 0 ? { skipped_day: later(known.skipped_day ?? null, day) } : {};
  return withLast(withRecent({ ...known, ...ended, ...over }, day, figures), {
    last_success,
    last_failure,
  });
}

/** While runs are in the log, they themselves say when a task ran. */
export function taskWithRemoved(
  document: LastDayDocument | null,
  { started }: DataOf<'RunRemoved'>,
): LastDayDocument | null {
  if (started === undefined) return document;
  const known = document ?? { scope: TASKS, day: '' };
  const { removed_start = '' } = known;
  return removed_start >= started.at ? document : { ...known, removed_start: started.at };
}

const none: RecentDay = [0, 0, 0, 0];

function placed(document: LastDayDocument | null, namespace: string | undefined): LastDayDocument {
  const place = namespace === undefined ? {} : { namespace };
  return { scope: TASKS, day: '', ...document, ...place };
}

const laterDay = ({ day: known }: LastDayDocument, day: string): string =>
  known > day ? known : day;

/** Whatever the order of the events, the same days stay. */
function withRecent(document: LastDayDocument, day: string, figures: RecentDay): LastDayDocument {
  const all = { ...document.recent, [day]: figures };
  const days = Object.keys(all);
  const latest = days.reduce((one, other) => (one > other ? one : other));
  const first = dayOf(toIso(startOfDay(latest) - (RECENT_DAYS - 1) * DAY));
  for (const each of days) if (each < first) delete all[each];
  return { ...document, recent: all };
}

function withLast(
  document: LastDayDocument,
  last: { readonly last_success: string | null; readonly last_failure: string | null },
): LastDayDocument {
  const latest = (one: string | undefined, other: string | null): string | undefined =>
    other === null ? one : later(one ?? null, other);
  const last_success = latest(document.last_success, last.last_success);
  const last_failure = latest(document.last_failure, last.last_failure);
  const { failing: _failing, ...rest } = document;
  const isFailing = last_failure !== undefined && last_failure > (last_success ?? '');
  return {
    ...rest,
    ...(last_success === undefined ? {} : { last_success }),
    ...(last_failure === undefined ? {} : { last_failure, failed_day: dayOf(last_failure) }),
    ...(isFailing ? { failing: last_failure } : {}),
  };
}
