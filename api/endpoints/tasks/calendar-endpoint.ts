import { toIso, type Instant } from '../../../domain/clock.ts';
import { decidedWithin } from '../../../domain/explain/decided-span.ts';
import { endOf, startOf, type Decision } from '../../../domain/explain/decisions.ts';
import { civilOf, DAY, dayOf, MAX_YEAR, monthLength } from '../../../domain/schedule/civil.ts';
import { unknownZoneMessage } from '../../../domain/schedule/zone-names.ts';
import { zoneOf, type Zone } from '../../../domain/schedule/zone.ts';
import { streams } from '../../../domain/streams.ts';
import type { RunState } from '../../../domain/vocabulary.ts';
import type { Filter, ReadModel } from '../../../projections/read-model.ts';
import { runsProjection } from '../../../projections/views/runs.ts';
import {
  Calendar,
  CalendarQuery,
  MAX_PARTS,
  type CalendarUnit,
} from '../../schemas/fire-schemas.ts';
import { endpoint, idIn, type Endpoint } from '../../endpoint.ts';
import { badRequest } from '../../errors.ts';
import { taskWithId } from '../lookup.ts';

/** The most decisions that are read for a calendar. If there are more, only runs are counted. */
const MAX_DECISIONS = 10_000;

/** A day or a month of a time zone. */
interface Part {
  readonly date: string;
  readonly from: Instant;
  /** The last millisecond. */
  readonly to: Instant;
}

const calendar = endpoint('GET /tasks/:id/calendar', {
  operationId: 'getTaskCalendar',
  summary: 'Counts the decided fires and the runs of a task for each day or month',
  description:
    'The numbers come from the log and the view of runs, not from the current schedule. ' +
    '`fired` and `skipped` are null if the span has over 10,000 decisions. ' +
    'Runs of all triggers count, at the time of their request. ' +
    'A gap is a series of skipped fires that spans several parts.',
  scopes: ['tasks:read'],
  acceptsOwn: true,
  query: CalendarQuery,
  reads: [runsProjection],
  responses: { 200: Calendar },
  async handle(call) {
    const { dependencies, query, context } = call;
    const { store, readModel } = dependencies;
    const id = idIn(call, 'id');
    const { by } = query;
    const [first, last] = [dateIn('from', query.from), dateIn('to', query.to)];
    const dates = datesFrom(first, last, by);
    if (query.timezone !== undefined) zoneNamed(query.timezone);
    const { definition, created_at } = await taskWithId(call, id);
    const timezone = query.timezone ?? definition.timezone;
    const parts = partsOf(dates, zoneNamed(timezone), by);
    const span = { from: parts[0]?.from ?? 0, to: parts.at(-1)?.to ?? 0 };
    const decisions = await decidedWithin(store, streams.fires(id), span, MAX_DECISIONS);
    const created = Date.parse(created_at);
    const counted = await Promise.all(
      parts.map(async (part) => {
        const mayHaveRuns = part.to >= created && part.from <= context.now;
        const runs = mayHaveRuns ? await runsIn(readModel, id, part) : noRuns;
        const { date, from, to } = part;
        const decided = decisions === null ? uncounted : decidedIn(decisions, part);
        return { date, from: toIso(from), to: toIso(to), ...decided, runs };
      }),
    );
    const gaps = (decisions ?? []).filter((each) => !parts.some((part) => lies(each, part)));
    return { body: { task_id: id, timezone, by, parts: counted, gaps: gaps.flatMap(showGap) } };
  },
});

export const calendarEndpoints: readonly Endpoint[] = [calendar];

/** @returns the number of its day @throws HttpError 400 for a date that does not exist or is in the last year */
function dateIn(field: 'from' | 'to', given: string): number {
  const [year = 0, month = 0, day = 0] = given.split('-').map(Number);
  if (
    year >= 1 &&
    year < MAX_YEAR &&
    month >= 1 &&
    month <= 12 &&
    day >= 1 &&
    day <= monthLength(year, month)
  ) {
    return dayOf(year, month, day);
  }
  throw badRequest([{ field, issue: `${given} is not a date of the years 1 to ${MAX_YEAR - 1}` }]);
}

/**
 * The first days of the parts, and of the part after them.
 * @throws HttpError 400 for a span that ends before it starts or has too many parts
 */
function datesFrom(first: number, last: number, by: CalendarUnit): readonly number[] {
  if (last < first) throw badRequest([{ field: 'to', issue: 'must not be before from' }]);
  const most = MAX_PARTS[by];
  const { year, month } = civilOf(first);
  const dates: number[] = [];
  for (let part = 0; part <= most + 1; part += 1) {
    const begins = by === 'day' ? first + part : firstOfMonth(year, month + part);
    dates.push(begins);
    if (begins > last) break;
  }
  if (dates.length <= most + 1) return dates;
  throw badRequest([{ field: 'to', issue: `must be at most ${most} ${by}s after from` }]);
}

/** @param month may be beyond December */
function firstOfMonth(year: number, month: number): number {
  const beyond = Math.floor((month - 1) / 12);
  return dayOf(year + beyond, month - 12 * beyond, 1);
}

/** @throws HttpError 400 */
function zoneNamed(name: string): Zone {
  const zone = zoneOf(name);
  if (zone !== null) return zone;
  throw badRequest([{ field: 'timezone', issue: unknownZoneMessage(name) }]);
}

function partsOf(dates: readonly number[], zone: Zone, by: CalendarUnit): readonly Part[] {
  const begins = dates.map((day) => zone.resolve(day * DAY).at);
  return dates.slice(0, -1).map((day, n) => {
    const text = toIso(day * DAY).slice(0, by === 'day' ? 10 : 7);
    return { date: text, from: begins[n] ?? 0, to: (begins[n + 1] ?? 0) - 1 };
  });
}

const lies = (decision: Decision, { from, to }: Part): boolean =>
  startOf(decision) >= from && endOf(decision) <= to;

const uncounted = { fired: null, skipped: null };

/** The decided fires of a part, and those that were skipped within it. */
function decidedIn(decisions: readonly Decision[], part: Part) {
  const skipped = { missed: 0, paused: 0, snoozed: 0, bounds: 0 };
  let fired = 0;
  for (const decision of decisions) {
    if (!lies(decision, part)) continue;
    if (decision.type === 'Fired') fired += 1;
    else skipped[decision.data.reason] += decision.data.count;
  }
  return { fired, skipped };
}

function showGap(decision: Decision) {
  if (decision.type === 'Fired') return [];
  const { reason, from, to, count } = decision.data;
  return [{ reason, from, to, count }];
}

const noRuns = { succeeded: 0, failed: 0, canceled: 0, unfinished: 0, skipped: 0 };

/** The runs that were requested in a part. Each count reads only an index. */
async function runsIn(readModel: ReadModel, taskId: string, { from, to }: Part) {
  const count = (listed: boolean, state?: RunState): Promise<number> => {
    const filters: Filter[] = [
      { field: 'task_id', op: 'eq', value: taskId },
      { field: 'listed', op: 'eq', value: listed },
      { field: 'queued_at', op: 'gte', value: toIso(from) },
      { field: 'queued_at', op: 'lte', value: toIso(to) },
    ];
    if (state !== undefined) filters.push({ field: 'state', op: 'eq', value: state });
    return readModel.count(runsProjection, filters);
  };
  const listed = await count(true);
  const skipped = await count(false);
  if (listed === 0) return { ...noRuns, skipped };
  const [succeeded, failed, canceled] = await Promise.all([
    count(true, 'succeeded'),
    count(true, 'failed'),
    count(true, 'canceled'),
  ]);
  // The counts may come from reads at different instants.
  const unfinished = Math.max(0, listed - succeeded - failed - canceled);
  return { succeeded, failed, canceled, unfinished, skipped };
}
