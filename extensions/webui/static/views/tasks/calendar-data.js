// What a calendar shows: of the past what was decided, by the service's records; of the future what the schedule gives.

import { call, may } from '../../client.js';
import { dateIn } from '../../zones.js';
import { lastOfMonth } from './calendar-dates.js';

/** Fires to come that are read at once. */
const MAX_AHEAD = 1000;
/** Decisions, and runs that no fire caused, in one request. */
const PAGE = 100;

/** Explains a fire, or why there was none. */
export const explain = (task, at, signal) =>
  call('GET', `tasks/${task.id}/explain`, { query: { at }, signal });

/**
 * The fires to come before an instant: a preview of the schedule as it is now. None of a task that is not active.
 * @returns `{fires, isWhole}`
 */
async function firesAhead(task, from, to, signal) {
  const begins = Math.max(from - 1, Date.now());
  if (task.status !== 'active' || task.schedule_kind === 'event' || begins >= to) {
    return { fires: [], isWhole: true };
  }
  const body = { task_id: task.id, from: new Date(begins).toISOString(), count: MAX_AHEAD };
  const { fires } = await call('POST', 'schedules/preview', { body, signal });
  const within = fires.filter(({ at }) => Date.parse(at) <= to);
  return { fires: within, isWhole: within.length < fires.length || fires.length < MAX_AHEAD };
}

/**
 * The days of a month, or the months of a year.
 * @param {'day' | 'month'} by @param {string} date any of the month or year
 * @returns `{parts, gaps, isCounted}`: each part `{date, counts, ahead, isOpen}`; `isOpen` if more fires are to come in it
 *   than were read; `isCounted`: whether there were few enough decisions to count
 */
export async function readParts(task, zone, by, date, signal) {
  const year = date.slice(0, 4);
  const from = by === 'day' ? `${date.slice(0, 7)}-01` : `${year}-01-01`;
  const to = by === 'day' ? lastOfMonth(date) : `${year}-12-31`;
  const query = { from, to, by, timezone: zone };
  const { parts, gaps } = await call('GET', `tasks/${task.id}/calendar`, { query, signal });
  const span = [Date.parse(parts[0].from), Date.parse(parts.at(-1).to)];
  const { fires, isWhole } = await firesAhead(task, ...span, signal);
  const ahead = new Map();
  const partOf = (at) => dateIn(new Date(at), zone).slice(0, by === 'day' ? 10 : 7);
  for (const { at } of fires) ahead.set(partOf(at), (ahead.get(partOf(at)) ?? 0) + 1);
  const last = isWhole ? null : partOf(fires.at(-1).at);
  const ends = task.ends_at === null ? null : partOf(task.ends_at);
  const isOpen = (each) => last !== null && each >= last && (ends === null || each <= ends);
  const shown = parts.map((part) => ({
    date: part.date,
    counts: countsOf(part),
    ahead: ahead.get(part.date) ?? 0,
    isOpen: isOpen(part.date),
    gaps: gaps.filter((gap) => gap.from <= part.to && gap.to >= part.from),
  }));
  return { parts: shown, isCounted: parts[0].fired !== null };
}

const sum = (of) => Object.values(of ?? {}).reduce((all, each) => all + each, 0);

/** Of runs, and of fires that were skipped. */
function countsOf({ runs, skipped }) {
  const { succeeded, failed, unfinished } = runs;
  return { succeeded, failed, unfinished, skipped: runs.skipped + runs.canceled + sum(skipped) };
}

/**
 * A page of what was decided on a day, newest first, with the runs that no fire caused.
 * @returns `{items, ahead, isAll, next}`; items are `{at, fire?, run?}`
 */
export async function readDay(task, zone, date, signal) {
  const query = { from: date, to: date, by: 'day', timezone: zone };
  const { parts } = await call('GET', `tasks/${task.id}/calendar`, { query, signal });
  const [{ from, to }] = parts;
  const [decided, others, ahead] = await Promise.all([
    readDecided(task, from, to, undefined, signal),
    readOthers(task, from, to, signal),
    firesAhead(task, Date.parse(from), Date.parse(to), signal),
  ]);
  const fires = decided.items.map((fire) => ({ at: fire.to, fire, run: fire.run }));
  const items = [...fires, ...others].sort((a, b) => (a.at < b.at ? 1 : -1));
  return { items, from, to, next: decided.next, ahead: ahead.fires, isAll: ahead.isWhole };
}

/** Decisions about a span before a place of their list. */
export async function readDecided(task, from, to, cursor, signal) {
  const query = { from, to, cursor, limit: PAGE };
  const page = await call('GET', `tasks/${task.id}/fires`, { query, signal });
  return { items: page.items, next: page.next_cursor };
}

/** Runs that were started by hand, by an event or by a backfill. */
async function readOthers(task, from, to, signal) {
  if (!may('runs:read') || Date.parse(from) > Date.now()) return [];
  const read = async (trigger) => {
    const query = { task_id: task.id, trigger, start_time: from, end_time: to, limit: PAGE };
    return (await call('GET', 'runs', { query, signal })).items;
  };
  const found = await Promise.all(['manual', 'event', 'backfill'].map(read));
  return found.flat().map((run) => ({ at: run.started_at, run }));
}
