// The fires of a task, past and future, with what became of them: of a month in numbers, of a day one by one.

import { call, may } from '../../client.js';

/** Fires that are read at once. Of a month with more, only runs are counted. */
const MAX_FIRES = 1000;
/** Runs in one request, and requests for one month. */
const PAGE = 200;
const MAX_PAGES = 5;
/** Fires of a day that are listed, and those whose explanations are read with them. */
const MAX_LISTED = 100;
const MAX_EXPLAINED = 12;
const noRuns = { runs: [], isWhole: true };
const noFires = { fires: [], isWhole: true };

/** The browser's date of an instant: `2026-11-21`. */
export const dateOf = (instant) =>
  [instant.getFullYear(), instant.getMonth() + 1, instant.getDate()]
    .map((part) => String(part).padStart(2, '0'))
    .join('-');

const timeOf = (run) => run.scheduled_for ?? run.started_at ?? run.queued_at;
const clamp = (time, from, to) => Math.min(Math.max(time, from), to);

/** Explains a fire, or why there was none. */
export const explain = (task, at, signal) =>
  call('GET', `tasks/${task.id}/explain`, { query: { at }, signal });

/** Fires of the schedule after an instant and before another, in milliseconds. */
async function firesOf(task, from, to, signal) {
  const body = { task_id: task.id, from: new Date(from).toISOString(), count: MAX_FIRES };
  const { fires } = await call('POST', 'schedules/preview', { body, signal });
  const within = fires.filter(({ at }) => Date.parse(at) < to);
  return { fires: within, isWhole: within.length < fires.length || fires.length < MAX_FIRES };
}

/** The latest fires of a span. If it has too many to read at once, their mean distance tells where to look. */
async function latestFires(task, from, to, signal) {
  const { fires, isWhole } = await firesOf(task, from, to, signal);
  if (isWhole) return fires;
  const [first, last] = [Date.parse(fires[0].at), Date.parse(fires.at(-1).at)];
  const distance = (last - first) / (fires.length - 1);
  const later = Math.max(from, to - distance * MAX_FIRES * 0.5);
  return (await firesOf(task, later, to, signal)).fires;
}

/**
 * Runs of a span, the latest first.
 * @param pages at most so many of the list; of a span with more than several pages hold, none are read
 */
async function runsOf(task, from, to, pages, signal) {
  if (!may('runs:read') || from > Date.now()) return noRuns;
  const found = new Map();
  const read = async (filter) => {
    let cursor;
    for (let page = 0; page < pages && cursor !== null; page += 1) {
      const query = { task_id: task.id, limit: PAGE, include_errors: false, cursor, ...filter };
      const { items, total, next_cursor } = await call('GET', 'runs', { query, signal });
      if (total > pages * PAGE && pages > 1) return false;
      for (const run of items) found.set(run.id, run);
      cursor = next_cursor;
    }
    return cursor === null;
  };
  const iso = (time) => new Date(time).toISOString();
  // Runs that have not started have no start time.
  const filters = ['skipped', 'queued', 'retrying'].map((state) => ({ state }));
  const [isWhole] = await Promise.all(
    [{ start_time: iso(from), end_time: iso(to) }, ...filters].map(read),
  );
  const runs = [...found.values()].filter((run) => {
    const at = Date.parse(timeOf(run));
    return at >= from && at < to;
  });
  return { runs, isWhole };
}

/** Fires of a span: those before now as `past` reads them, those to come, and the runs. */
async function readSpan(task, from, to, { pages, past, signal }) {
  const created = Date.parse(task.created_at);
  const now = clamp(Date.now(), from - 1, to);
  // A fire at the very start belongs to the span.
  const began = clamp(created - 1, from - 1, now);
  return Promise.all([
    began < now ? past(task, began, now, signal) : noFires,
    now < to && task.status === 'active' ? firesOf(task, now, to, signal) : noFires,
    runsOf(task, from, to, pages, signal),
  ]);
}

const emptyDay = () => ({ succeeded: 0, failed: 0, unfinished: 0, missing: 0, coming: 0 });
const kindOf = {
  succeeded: 'succeeded',
  failed: 'failed',
  skipped: 'missing',
  canceled: 'missing',
};

/**
 * The numbers of each day of a month.
 * @returns `of(date)`: the numbers of a day; `isPartial`: whether missing runs could not be counted; `isOpen(date)`:
 *   whether a day has more fires to come than were read; `month`: as given
 */
export async function readMonth(task, month, signal) {
  const from = month.getTime();
  const to = new Date(month.getFullYear(), month.getMonth() + 1, 1).getTime();
  const [past, ahead, { runs, isWhole }] = await readSpan(task, from, to, {
    pages: MAX_PAGES,
    past: firesOf,
    signal,
  });
  const days = new Map();
  const of = (instant) => {
    const date = dateOf(new Date(instant));
    if (!days.has(date)) days.set(date, emptyDay());
    return days.get(date);
  };
  if (isWhole) for (const run of runs) of(timeOf(run))[kindOf[run.state] ?? 'unfinished'] += 1;
  else await countDays(task, month, of, signal);
  for (const { at } of ahead.fires) of(at).coming += 1;
  const isPartial = !isWhole || !past.isWhole;
  const ran = new Set(runs.map((run) => run.scheduled_for));
  const begins = Math.max(
    ...[task.created_at, task.starts_at ?? task.created_at].map((each) => Date.parse(each)),
  );
  for (const { at } of isPartial ? [] : past.fires) {
    if (Date.parse(at) > begins && !ran.has(at)) of(at).missing += 1;
  }
  const last = ahead.isWhole ? null : dateOf(new Date(ahead.fires.at(-1).at));
  const ends = task.ends_at === null ? null : dateOf(new Date(task.ends_at));
  const isOpen = (date) => last !== null && date >= last && (ends === null || date <= ends);
  return { month, of: (date) => days.get(date) ?? emptyDay(), isPartial, isOpen };
}

/** From the statistics, which count by days of UTC: for months with too many runs. */
async function countDays(task, month, of, signal) {
  const days = Math.min(365, Math.ceil((Date.now() - month.getTime()) / 86_400_000) + 1);
  const { by_day } = await call('GET', `task/${task.id}/stats`, { query: { days }, signal });
  const prefix = dateOf(month).slice(0, 7);
  for (const { date, successful_runs, failed_runs } of by_day) {
    if (!date.startsWith(prefix)) continue;
    const day = of(`${date}T12:00:00`);
    day.succeeded += successful_runs;
    day.failed += failed_runs;
  }
}

/**
 * The fires of a day.
 * @returns `past`: the latest first, each `{at, run?, explanation?}`; `ahead`: those to come, `isAll` of them or not;
 *   `hasMore`: whether there were more
 */
export async function readDay(task, date, signal) {
  const [year, month, day] = date.split('-').map(Number);
  const from = new Date(year, month - 1, day).getTime();
  const to = new Date(year, month - 1, day + 1).getTime();
  const readPast = async (...span) => ({ fires: await latestFires(...span) });
  const [planned, ahead, { runs, isWhole }] = await readSpan(task, from, to, {
    pages: 1,
    past: readPast,
    signal,
  });
  const created = Date.parse(task.created_at);
  // Fires before the earliest run that was read may have run as well.
  const known = isWhole
    ? created
    : Math.min(Date.now(), ...runs.map((run) => Date.parse(timeOf(run))));
  const scheduled = new Map(
    runs.filter(({ trigger }) => trigger === 'schedule').map((run) => [run.scheduled_for, run]),
  );
  const past = planned.fires
    .filter(({ at }) => Date.parse(at) > created && Date.parse(at) >= known)
    .map(({ at }) => ({ at, run: scheduled.get(at) }));
  for (const { at } of past) scheduled.delete(at);
  // Those left were planned by an earlier schedule of the task.
  for (const [at, run] of scheduled) past.push({ at, run });
  for (const run of runs.filter(({ trigger }) => trigger !== 'schedule')) {
    past.push({ at: run.started_at ?? timeOf(run), run });
  }
  past.sort((a, b) => Date.parse(b.at) - Date.parse(a.at));
  const unknown = past.filter(({ run }) => run === undefined).slice(0, MAX_EXPLAINED);
  await Promise.all(
    unknown.map(async (fire) => {
      fire.explanation = await explain(task, fire.at, signal);
    }),
  );
  return {
    date,
    past: past.slice(0, MAX_LISTED),
    ahead: ahead.fires,
    isAll: ahead.isWhole,
    hasMore: !isWhole || past.length > MAX_LISTED,
  };
}
