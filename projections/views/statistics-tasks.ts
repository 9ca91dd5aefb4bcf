import { toIso } from '../../domain/clock.ts';
import type { RecordedEvent } from '../../domain/event-store.ts';
import type { DataOf } from '../../domain/events/catalogue.ts';
import type { JsonObject } from '../../domain/json.ts';
import { dayOf, durationOf, later, startOfDay, type EndedEvent } from './statistics-days.ts';

/** Scope of the documents with the figures of each task. */
export const TASKS = 'tasks';

/** For how many UTC days a task's document has figures. */
export const RECENT_DAYS = 33;

/**
 * Limits of the durations in a task's document: the latest runs, and the UTC days on which they ended. The last day is
 * that of the latest run.
 */
export const LATEST_RUNS = 100;
export const LATEST_DAYS = 7;

const DAY = 86_400_000;

/** One day of a task: ended runs, failed ones, their time in milliseconds, and skipped runs. */
export type RecentDay = readonly [total: number, failed: number, ms: number, skipped: number];

/** The last days of a task. With them, a summary can count and rank tasks without reading every day of every task. */
export type LastDayDocument = JsonObject & {
  readonly scope: typeof TASKS;
  /** Left out in `default`. */
  readonly namespace?: string;
  /** The last UTC day on which a run ended; empty if unknown. */
  readonly day: string;
  /** The latest start of its removed runs; missing if none was removed. */
  readonly removed_start?: string;
  /** Keyed by UTC day, for the last {@link RECENT_DAYS} only. */
  readonly recent?: { readonly [day: string]: RecentDay };
  /**
   * How long the latest runs took, in milliseconds, by the UTC day on which they ended: {@link LATEST_RUNS} of the last
   * {@link LATEST_DAYS}.
   */
  readonly latest?: { readonly [day: string]: readonly number[] };
  /** The 95th percentile of {@link latest}, in milliseconds; left out for none. */
  readonly p95_ms?: number;
  readonly last_success?: string;
  readonly last_failure?: string;
  /** The latest failure, if no success came after it. */
  readonly failing?: string;
  /** The last UTC day on which a run failed; left out if there is none. */
  readonly failed_day?: string;
  /** The last UTC day on which a run was skipped; left out if there is none. */
  readonly skipped_day?: string;
};

/** The key of a {@link LastDayDocument}. */
export function lastDayKey(taskId: string): string {
  return `${TASKS}/${taskId}`;
}

/** The index of each figure in a {@link RecentDay}. */
const figures = { total: 0, failed: 1, ms: 2, skipped: 3 } as const;

/**
 * Sums a figure over some days, from the JSON of a {@link LastDayDocument}. Ten thousand tasks may be ranked, and parsing
 * each document takes four times as long.
 */
export function recentSumIn(
  text: string,
  { first, last }: { readonly first: string; readonly last: string },
  figure: keyof typeof figures,
): number {
  const from = text.indexOf('"recent":{');
  if (from === -1) return 0;
  const to = text.indexOf('}', from);
  let sum = 0;
  for (let at = text.indexOf(DAY_END, from); at !== -1 && at < to;) {
    const day = text.slice(at - first.length, at);
    at += DAY_END.length;
    if (day >= first && day <= last) {
      for (let before = 0; before < figures[figure]; at += 1) {
        if (text.charCodeAt(at) === COMMA) before += 1;
      }
      let value = 0;
      for (let code = text.charCodeAt(at); isDigit(code); code = text.charCodeAt(at)) {
        value = value * 10 + code - ZERO;
        at += 1;
      }
      sum += value;
    }
    at = text.indexOf(DAY_END, at);
  }
  return sum;
}

/** What follows a day in the JSON of {@link LastDayDocument.recent}. */
const DAY_END = '":[';

const COMMA = 44;
const ZERO = 48;
const isDigit = (code: number): boolean => code >= ZERO && code <= ZERO + 9;

/** The task's document after the end of a run. */
export function taskWithEnded(
  document: LastDayDocument | null,
  event: EndedEvent,
): LastDayDocument {
  const at = event.metadata.occurredAt;
  const day = dayOf(at);
  const took = durationOf(event);
  const [total, failed, ms, skipped] = document?.recent?.[day] ?? none;
  const isFailed = event.type === 'RunFailed';
  const figures = [total + 1, failed + (isFailed ? 1 : 0), ms + took, skipped] as const;
  const known = placed(document, event.data.namespace);
  const timed = withDuration({ ...known, day: laterDay(known, day) }, day, took);
  return withLast(withRecent(timed, day, figures), {
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

/** The figures of a day, of one task or of all tasks. */
export type KeptDay = Exclude<
  DataOf<'StatisticsKept'>['figures'][number],
  { readonly group: string }
>;

/**
 * The task's document with the figures of a day whose runs were removed. The durations of those runs no longer count,
 * because a rebuilt view does not see them.
 */
export function taskWithKept(
  document: LastDayDocument | null,
  day: string,
  kept: KeptDay,
): LastDayDocument {
  const known = withoutDurations(placed(document, kept.namespace), day);
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

/** Runs that are still in the log show when a task ran. */
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

/** The same days stay in any order of the events. */
function withRecent(document: LastDayDocument, day: string, figures: RecentDay): LastDayDocument {
  const recent = { ...document.recent, [day]: figures };
  if (document.recent?.[day] === undefined) keepLastDays(recent, RECENT_DAYS);
  return { ...document, recent };
}

/** Deletes all days except the last ones, counted back from the latest day. */
function keepLastDays(byDay: Record<string, unknown>, most: number): void {
  const days = Object.keys(byDay);
  const latest = days.reduce((one, other) => (one > other ? one : other));
  const first = dayOf(toIso(startOfDay(latest) - (most - 1) * DAY));
  for (const each of days) if (each < first) delete byDay[each];
}

function withDuration(document: LastDayDocument, day: string, took: number): LastDayDocument {
  const known = document.latest?.[day];
  const latest = { ...document.latest, [day]: known === undefined ? [took] : [...known, took] };
  if (known === undefined) keepLastDays(latest, LATEST_DAYS);
  // In any order of the events, the same runs stay: those of the last days.
  if (sizeOf(latest) > LATEST_RUNS) {
    const first = Object.keys(latest).reduce((one, other) => (one < other ? one : other));
    const left = latest[first]?.slice(1) ?? [];
    if (left.length > 0) latest[first] = left;
    else delete latest[first];
  }
  return withLatest(document, latest);
}

/** Leaves out a day and all days before it, because earlier runs are removed no later. */
function withoutDurations(document: LastDayDocument, removed: string): LastDayDocument {
  const left = Object.entries(document.latest ?? {}).filter(([day]) => day > removed);
  return withLatest(document, Object.fromEntries(left));
}

function sizeOf(latest: NonNullable<LastDayDocument['latest']>): number {
  let size = 0;
  for (const day in latest) size += latest[day]?.length ?? 0;
  return size;
}

function withLatest(
  document: LastDayDocument,
  latest: NonNullable<LastDayDocument['latest']>,
): LastDayDocument {
  const p95_ms = p95Of(latest);
  if (p95_ms !== undefined) return { ...document, latest, p95_ms };
  const { latest: _latest, p95_ms: _p95, ...rest } = document;
  return rest;
}

/**
 * The smallest duration that 95 % do not exceed. Few durations are longer, and collecting those costs a tenth of
 * sorting all durations.
 */
function p95Of(latest: NonNullable<LastDayDocument['latest']>): number | undefined {
  const size = sizeOf(latest);
  const kept = size - Math.ceil(size * 0.95) + 1;
  /** The longest durations, the longest first. */
  const longest: number[] = [];
  for (const day in latest) {
    for (const took of latest[day] ?? []) {
      if (longest.length === kept && took <= (longest[kept - 1] ?? 0)) continue;
      if (longest.length === kept) longest.pop();
      let place = longest.length;
      for (; place > 0 && (longest[place - 1] ?? 0) < took; place -= 1) {
        longest[place] = longest[place - 1] ?? 0;
      }
      longest[place] = took;
    }
  }
  return longest[kept - 1];
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
