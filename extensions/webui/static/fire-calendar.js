// A month of a task's fires: what each day's came to, what is to come, and of any day each fire, with why it did not run.

import { call, may } from './client.js';
import { button, failure, h, nothing, num, partWith, put, state, table, wide } from './dom.js';
import { runLink } from './names.js';
import { turns } from './paging.js';
import { count, duration, tookOf } from './times.js';

/** Most fires of a month that are looked at one by one; of more, only what has run is counted. */
const MOST_FIRES = 1000;
/** Runs that one request brings, and how many requests a month may need. */
const PAGE = 200;
const MOST_PAGES = 5;
/** Fires of a day that are listed, and how many of those are asked about. */
const LISTED = 100;
const ASKED = 12;
/** Of those to come, as many are listed. */
const AHEAD = 5;

const dayFormat = new Intl.DateTimeFormat('en-GB', {
  weekday: 'long',
  day: 'numeric',
  month: 'long',
});
const monthFormat = new Intl.DateTimeFormat('en-GB', { month: 'long', year: 'numeric' });
const clock = new Intl.DateTimeFormat('en-GB', {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
});

/** The browser's day of an instant: `2026-11-21`. */
const dayOf = (iso) => dateOf(new Date(iso));
const dateOf = (date) =>
  [date.getFullYear(), date.getMonth() + 1, date.getDate()]
    .map((part) => String(part).padStart(2, '0'))
    .join('-');

/** Draws the calendar of a task into a place, and reads each month when it is gone to. */
export async function fireCalendar(place, task, signal) {
  const today = new Date();
  let month = new Date(today.getFullYear(), today.getMonth(), 1);
  let chosen = dateOf(today);
  const nextTurn = turns(signal);
  const grid = h('div');
  const day = h('div', { 'aria-live': 'polite' });
  const title = h('span.month', { 'aria-live': 'polite' });

  const go = (by) => async () => {
    month = new Date(month.getFullYear(), month.getMonth() + by, 1);
    chosen = null;
    await load();
  };

  async function load() {
    const isLatest = nextTurn();
    title.textContent = monthFormat.format(month);
    try {
      const data = await readMonth(task, month, signal);
      if (!isLatest()) return;
      drawMonth(data);
      if (chosen === null) put(day);
      else await showDay(chosen);
    } catch (error) {
      if (isLatest()) put(grid, failure(error, load));
    }
  }

  function drawMonth(data) {
    // Monday first.
    const lead = (month.getDay() + 6) % 7;
    const length = new Date(month.getFullYear(), month.getMonth() + 1, 0).getDate();
    const weekdays = ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'];
    const cells = Array.from({ length }, (_, n) => {
      const date = dateOf(new Date(month.getFullYear(), month.getMonth(), n + 1));
      const { good, bad, open, missing, coming } = data.days.get(date) ?? emptyDay();
      const parts = [
        good > 0 && ['good', good, 'succeeded'],
        bad > 0 && ['bad', bad, 'failed'],
        open > 0 && ['busy', open, 'not over'],
        missing > 0 && ['wait', missing, 'did not run'],
        coming > 0 && ['idle', coming, 'to come'],
      ].filter(Boolean);
      const said = parts.map(([, many, what]) => `${count(many)} ${what}`);
      if (data.uncounted(date)) said.push('more to come');
      const words = said.join(', ');
      const cell = h(
        'button.day',
        {
          type: 'button',
          'aria-pressed': String(date === chosen),
          title: words,
          onclick() {
            chosen = date;
            for (const other of grid.querySelectorAll('[aria-pressed=true]')) {
              other.setAttribute('aria-pressed', 'false');
            }
            cell.setAttribute('aria-pressed', 'true');
            void showDay(date);
          },
        },
        h('span.date', {}, String(n + 1)),
        h('span.hidden', {}, ` ${monthFormat.format(month)}: ${words || 'no fires'}`),
        h(
          'span.counts',
          { 'aria-hidden': 'true' },
          parts.map(([tone, many]) => h(`span.${tone}`, {}, shortCount(many))),
          data.uncounted(date) && h('span.idle', {}, '…'),
        ),
      );
      if (date === dateOf(today)) cell.classList.add('today');
      return cell;
    });
    put(
      grid,
      h(
        'div.calendar',
        { role: 'group', 'aria-label': `Fires in ${monthFormat.format(month)}` },
        weekdays.map((each) => h('span.weekday', { 'aria-hidden': 'true' }, each)),
        Array.from({ length: lead }, () => h('span')),
        cells,
      ),
      h(
        'p.legend.soft',
        {},
        [
          ['good', 'succeeded'],
          ['bad', 'failed'],
          ['busy', 'not over'],
          ['wait', 'did not run'],
          ['idle', 'to come'],
        ].map(([tone, text]) => [h(`span.dot.${tone}`), `${text} `]),
        data.partly &&
          'It fires too often for what did not run to be counted over a month: choose a day.',
      ),
    );
  }

  async function showDay(date) {
    put(day, h('p.soft', {}, 'One moment …'));
    try {
      const { rows, ahead, all, more } = await dayRows(task, date, signal);
      if (chosen !== date) return;
      const [year, monthNumber, number] = date.split('-').map(Number);
      const name = dayFormat.format(new Date(year, monthNumber - 1, number));
      put(
        day,
        h('h3', {}, name),
        h(
          'div.day-list',
          {},
          table(
            `Fires of ${name}`,
            ['Time', 'Came to', num('Took'), wide('How')],
            [...ahead.slice(0, AHEAD).reverse(), ...rows],
            nothing(task.status === 'paused' ? 'None while it is paused.' : 'No fire on this day.'),
          ),
        ),
        ahead.length > AHEAD &&
          h('p.hint', {}, `${count(ahead.length)} ${all ? 'to come in all' : 'and more to come'}`),
        more &&
          h(
            'p.hint',
            {},
            'and earlier ones: ',
            h(
              'a',
              { href: `#/runs?task_id=${task.id}&since=${date}T00:00&until=${date}T23:59:59` },
              'the runs of this day',
            ),
          ),
      );
    } catch (error) {
      if (!signal.aborted && chosen === date)
        put(
          day,
          failure(error, () => showDay(date)),
        );
    }
  }

  put(
    place,
    partWith(
      'Calendar of fires',
      h(
        'div.row.middle',
        {},
        button('‹', go(-1), '.small', { 'aria-label': 'The month before' }),
        title,
        button('›', go(1), '.small', { 'aria-label': 'The month after' }),
      ),
      h('div.columns', {}, grid, day),
    ),
  );
  await load();
}

const emptyDay = () => ({ good: 0, bad: 0, open: 0, missing: 0, coming: 0 });
const shortCount = (many) => (many < 1000 ? String(many) : `${Math.round(many / 100) / 10}k`);

/** Fires of the schedule strictly after an instant, up to another. */
async function firesOf(task, from, to, signal) {
  const body = { task_id: task.id, from: from.toISOString(), count: MOST_FIRES };
  const { fires } = await call('POST', 'schedules/preview', { body, signal });
  const within = fires.filter(({ at }) => Date.parse(at) < to.getTime());
  return { fires: within, all: within.length < fires.length || fires.length < MOST_FIRES };
}

/** The latest fires of a span, where it has more than can be asked for at once: its rhythm says where to look. */
async function latestFires(task, from, to, signal) {
  const { fires, all } = await firesOf(task, from, to, signal);
  if (all) return fires;
  const [first, last] = [Date.parse(fires[0].at), Date.parse(fires.at(-1).at)];
  const gap = (last - first) / (fires.length - 1);
  const later = new Date(Math.max(from.getTime(), to.getTime() - gap * MOST_FIRES * 0.5));
  return (await firesOf(task, later, to, signal)).fires;
}

/**
 * Runs that were to be in a span, the latest first.
 * @param {number} pages of the list, at most
 * @returns {Promise<{runs: object[], whole: boolean}>} none where they are more than so many pages hold, but for one
 */
async function runsOf(task, from, to, pages, signal) {
  const found = new Map();
  if (!may('runs:read')) return { runs: [], whole: true };
  const read = async (query) => {
    let cursor;
    for (let page = 0; page < pages && cursor !== null; page += 1) {
      const { items, total, next_cursor } = await call('GET', 'runs', {
        query: { task_id: task.id, limit: PAGE, include_errors: false, cursor, ...query },
        signal,
      });
      if (total > pages * PAGE && pages > 1) return false;
      for (const run of items) found.set(run.id, run);
      cursor = next_cursor;
    }
    return cursor === null;
  };
  const started = { start_time: from.toISOString(), end_time: to.toISOString() };
  // Those that have not started have no such time.
  const others = from.getTime() > Date.now() ? [] : ['skipped', 'queued', 'retrying'];
  const [whole] = await Promise.all([read(started), ...others.map((state) => read({ state }))]);
  const within = [...found.values()].filter((run) => {
    const at = Date.parse(run.scheduled_for ?? run.started_at ?? run.queued_at);
    return at >= from.getTime() && at < to.getTime();
  });
  return { runs: within, whole };
}

async function readMonth(task, month, signal) {
  const end = new Date(month.getFullYear(), month.getMonth() + 1, 1);
  const now = Date.now();
  // A fire at the very first moment belongs to it.
  const from = new Date(month.getTime() - 1);
  const created = Math.max(
    Date.parse(task.created_at),
    task.starts_at ? Date.parse(task.starts_at) : 0,
  );
  const middle = new Date(Math.min(end.getTime(), Math.max(from.getTime(), now)));
  const begun = new Date(Math.min(middle.getTime(), Math.max(from.getTime(), created - 1)));
  const none = { fires: [], all: true };
  const [past, ahead, { runs, whole }] = await Promise.all([
    begun < middle ? firesOf(task, begun, middle, signal) : none,
    middle < end && task.status === 'active' ? firesOf(task, middle, end, signal) : none,
    month.getTime() > now
      ? { runs: [], whole: true }
      : runsOf(task, month, end, MOST_PAGES, signal),
  ]);
  const days = new Map();
  const of = (iso) => {
    const date = dayOf(iso);
    if (!days.has(date)) days.set(date, emptyDay());
    return days.get(date);
  };
  const partly = !whole || !past.all;
  const byTime = new Map(runs.map((run) => [run.scheduled_for, run]));
  for (const run of whole ? runs : []) {
    const day = of(run.scheduled_for ?? run.started_at ?? run.queued_at);
    if (run.state === 'succeeded') day.good += 1;
    else if (run.state === 'failed') day.bad += 1;
    else if (run.state === 'skipped' || run.state === 'canceled') day.missing += 1;
    else day.open += 1;
  }
  if (!whole) await countDays(task, month, of, signal);
  for (const { at } of ahead.fires) of(at).coming += 1;
  for (const { at } of partly ? [] : past.fires) {
    if (Date.parse(at) > created && !byTime.has(at)) of(at).missing += 1;
  }
  // Days whose fires to come are more than were asked for.
  const last = ahead.all ? null : dayOf(ahead.fires.at(-1).at);
  const ends = task.ends_at === null ? null : dayOf(task.ends_at);
  const uncounted = (date) => last !== null && date >= last && (ends === null || date <= ends);
  return { days, partly, uncounted };
}

/** From the statistics, which count by days of UTC: where runs are too many to be looked at. */
async function countDays(task, month, of, signal) {
  const days = Math.min(365, Math.ceil((Date.now() - month.getTime()) / 86_400_000) + 1);
  const { by_day } = await call('GET', `task/${task.id}/stats`, { query: { days }, signal });
  const prefix = dateOf(month).slice(0, 7);
  for (const { date, successful_runs, failed_runs } of by_day) {
    if (!date.startsWith(prefix)) continue;
    const day = of(`${date}T12:00:00`);
    day.good += successful_runs;
    day.bad += failed_runs;
  }
}

async function dayRows(task, date, signal) {
  const [year, month, number] = date.split('-').map(Number);
  const from = new Date(year, month - 1, number);
  const to = new Date(year, month - 1, number + 1);
  const now = Date.now();
  const created = Date.parse(task.created_at);
  const middle = new Date(Math.min(to.getTime(), Math.max(from.getTime(), now)));
  const begun = new Date(Math.max(from.getTime() - 1, created - 1));
  const active = task.status === 'active';
  const [planned, coming, { runs, whole }] = await Promise.all([
    begun < middle ? latestFires(task, begun, middle, signal) : [],
    middle < to && active ? firesOf(task, middle, to, signal) : { fires: [], all: true },
    from.getTime() > now ? { runs: [], whole: true } : runsOf(task, from, to, 1, signal),
  ]);
  const timeOfRun = (run) => run.scheduled_for ?? run.started_at ?? run.queued_at;
  // What lies before the earliest run that was read may have run as well.
  const known = whole ? created : Math.min(now, ...runs.map((run) => Date.parse(timeOfRun(run))));
  const byTime = new Map();
  const others = [];
  for (const run of runs) {
    if (run.trigger === 'schedule') byTime.set(run.scheduled_for, run);
    else others.push(run);
  }
  const ahead = coming.fires.map(({ at, note }) => [timeOf(at), state('to come'), '', note ?? '']);
  const past = [];
  for (const { at } of planned) {
    if (Date.parse(at) <= created || Date.parse(at) < known) continue;
    past.push({ at, run: byTime.get(at) });
    byTime.delete(at);
  }
  // By a rule that the task had before.
  for (const [at, run] of byTime) past.push({ at, run });
  for (const run of others) past.push({ at: run.started_at ?? timeOfRun(run), run });
  past.sort((a, b) => Date.parse(b.at) - Date.parse(a.at));
  const unclear = past.filter(({ run }) => run === undefined);
  await Promise.all(
    unclear.slice(0, ASKED).map(async (fire) => {
      fire.told = await call('GET', `tasks/${task.id}/explain`, { query: { at: fire.at }, signal });
    }),
  );
  const rows = past.slice(0, LISTED).map((fire) => pastRow(task, fire, signal));
  return { rows, ahead, all: coming.all, more: !whole || past.length > LISTED };
}

function pastRow(task, { at, run, told }, signal) {
  if (run !== undefined) {
    const took = tookOf(run);
    const by = run.trigger === 'schedule' ? '' : ` (${run.trigger})`;
    const why = run.error?.split('\n')[0] ?? run.skip_reason;
    return [
      timeOf(at),
      state(run.state),
      took === null ? '' : duration(took),
      [runLink(run.id, 'run '), by, why && ` ${why}`],
    ];
  }
  if (told !== undefined) return toldRow(at, told);
  const how = h('span');
  put(
    how,
    button(
      'Why?',
      async () => {
        const query = { at };
        const answer = await call('GET', `tasks/${task.id}/explain`, { query, signal });
        put(how, `${answer.reason ?? 'open'}: ${answer.message}`);
      },
      '.small',
    ),
  );
  return [timeOf(at), state('did not run'), '', how];
}

const toldRow = (at, { reason, message, run_id }) => [
  timeOf(at),
  state(reason ?? 'open'),
  '',
  [run_id !== null && [runLink(run_id, 'run '), ' '], message],
];

const timeOf = (at) => h('time', { datetime: at, title: at }, clock.format(new Date(at)));
