// The data of a calendar. The past comes from recorded decisions, the future from a preview of the schedule.

import { call, may } from '../../client.js';
import { dateIn } from '../../zones.js';
import { lastOfMonth } from './calendar-dates.js';

/** The most coming fires that are read at once. */
const MAX_AHEAD = 1000;
/** The page size for decisions, and for runs. */
const PAGE = 100;

/** Explains why a task fired at an instant, or why it did not. */
export const explain = (task, at, signal) =>
  call('GET', `tasks/${task.id}/explain`, { query: { at }, signal });

/**
 * The coming fires between two instants, by the present schedule. Only an active task has any.
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
 * @param {'day' | 'month'} by
 * @param {string} date any of the month or year
 * @returns `{parts, gaps, isCounted}`: each part `{date, counts, ahead, isOpen}`; `isOpen`: whether it has more coming
 *   fires than were read; `isCounted`: whether there were few enough decisions to count
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

/** The counts of runs by outcome. Fires that were skipped count like skipped runs. */
function countsOf({ runs, skipped }) {
  return { ...runs, skipped: runs.skipped + sum(skipped) };
}

/**
 * The decisions about a day and the other runs that were requested on it, newest first. A month counts the same runs.
 * @param {number} pages of each list, which are read again each time
 * @returns `{items, isMore, ahead, isAll}`; items are `{at, fire?, run?}`; `isMore`: whether there are earlier ones
 */
export async function readDay(task, zone, date, pages, signal) {
  const query = { from: date, to: date, by: 'day', timezone: zone };
  const { parts } = await call('GET', `tasks/${task.id}/calendar`, { query, signal });
  const [{ from, to }] = parts;
  const [lists, ahead] = await Promise.all([
    Promise.all(listsOf(task, from, to).map((list) => readPages(list, from, pages, signal))),
    firesAhead(task, Date.parse(from), Date.parse(to), signal),
  ]);
  // Later pages of one list may lie between the items of another.
  const reached = lists
    .map((list) => list.reached)
    .sort()
    .at(-1);
  const items = lists
    .flatMap((list) => list.items)
    .filter(({ at }) => at >= reached)
    .sort((a, b) => (a.at < b.at ? 1 : -1));
  return { items, isMore: reached > from, ahead: ahead.fires, isAll: ahead.isWhole };
}

/** @returns `{items, reached}`: all items since the instant `reached`, which is `from` if there are no earlier ones */
async function readPages({ path, query, itemOf }, from, pages, signal) {
  const items = [];
  let [cursor, reached] = [undefined, ''];
  for (let page = 0; page < pages && cursor !== null; page += 1) {
    const read = await call('GET', path, { query: { ...query, cursor, limit: PAGE }, signal });
    items.push(...read.items.map(itemOf));
    cursor = read.next_cursor;
    reached = cursor === null ? '' : items.at(-1).at;
    if (reached < from) break;
  }
  const within = items.filter(({ at, isDecided }) => at >= from && !isDecided);
  return { items: within, reached: reached < from ? from : reached };
}

const fireItem = (fire) => ({ at: fire.to, fire, run: fire.run });

/** The lists of a day: its decisions, and the runs that were requested until its end. Skipped runs are a separate list. */
function listsOf({ id }, from, to) {
  const decisions = { path: `tasks/${id}/fires`, query: { from, to }, itemOf: fireItem };
  if (!may('runs:read') || Date.parse(from) > Date.now()) return [decisions];
  // The run of a decision of the day comes with the decision.
  const isDecidedHere = ({ trigger, scheduled_for: nominal }) =>
    trigger === 'schedule' && nominal >= from && nominal <= to;
  const itemOf = (run) => ({ at: run.queued_at, run, isDecided: isDecidedHere(run) });
  const until = new Date(Date.parse(to) + 1).toISOString();
  const queries = [undefined, 'skipped'].map((state) => ({ task_id: id, state, until }));
  return [decisions, ...queries.map((query) => ({ path: 'runs', query, itemOf }))];
}
