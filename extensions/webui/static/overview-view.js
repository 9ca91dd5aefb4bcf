// What goes on: runs under way, what is due, what has failed, and how far the views are. Live.

import { holdService } from './banners.js';
import { call, may } from './client.js';
import { button, failure, h, heading, num, nothing, part, put, state, table, tile } from './dom.js';
import { follow, liveMark } from './live.js';
import { learnTitle, learnTitles, runLink, taskLink } from './names.js';
import { runsTable } from './runs-table.js';
import { count, duration, localField, percent, tookOf, when } from './times.js';

const HOUR = 3_600_000;
const BEAT = 1000;
/** How many runs under way, and due tasks, are shown, and of those that failed. */
const SHOWN = 12;
const FAILED = 10;
/** Of so many that began last, those that run longest are shown. */
const READ = 50;
const weekday = new Intl.DateTimeFormat('en-GB', { weekday: 'short', day: 'numeric' });
const dayAgo = () => new Date(Date.now() - 24 * HOUR);
const figure = (value) => (value === null ? '–' : count(value));
const underWayStates = ['running', 'retrying', 'queued'];

export async function overviewView(place, { signal }) {
  const tiles = h('div.tiles');
  const now = h('div');
  const failed = h('div');
  const due = h('div');
  const trend = h('div');
  const lag = h('div');
  const live = liveMark();
  /** Null: not known, or not to be seen. */
  const figures = { running: null, waiting: null, failed: null, due: null, lag: null, ended: 0 };
  let health = null;
  let summary = null;

  function drawTiles() {
    const day = summary?.by_day.at(-1);
    put(
      tiles,
      tile(
        'Running',
        figure(figures.running),
        `${figure(figures.waiting)} waiting`,
        '#/runs?state=running',
      ),
      figures.due !== null && tile('Due in the next hour', count(figures.due)),
      tile(
        'Failed in 24 hours',
        figure(figures.failed),
        null,
        `#/runs?state=failed&since=${localField(dayAgo())}`,
      ),
      day &&
        tile('Ended today (UTC)', count(day.total_runs), `${count(figures.ended)} since you look`),
      summary && tile('Succeeded in 7 days', percent(summary.success_rate)),
      figures.lag !== null &&
        tile('Lag of the views', duration(figures.lag * 1000), null, '#/projections'),
      health &&
        tile(
          'Health',
          state(health.status),
          health.checks.find(({ status }) => status !== 'healthy')?.message,
        ),
    );
  }

  function showUnderWay(runs, total) {
    const rows = runs.map((run) => {
      const took = tookOf(run);
      const since =
        took === null
          ? when(run.run_at)
          : h('span', { 'data-since': run.started_at }, duration(took));
      return [runLink(run.id), taskLink(run.task_id), state(run.state), since];
    });
    put(
      now,
      table('Runs under way', ['Run', 'Task', 'State', num('For')], rows, 'Nothing runs now.'),
      total > runs.length && h('p.hint', {}, `and ${count(total - runs.length)} more`),
    );
  }

  // What is told live says that something has changed, up to which position; what is shown is read.
  let changed;

  /** A part that can't be had does not take the others with it, and says so in its own place. */
  function shown(element, work) {
    return async function load(after) {
      try {
        await work(after);
      } catch (error) {
        if (signal.aborted) return;
        // The views are behind for a moment.
        const behind = error.status === 503 && typeof after === 'string';
        if (behind) changed ??= after;
        // The banner says that the service does not answer: what was read before stays.
        const passing = behind || error.status === 0;
        if (!passing || element.childElementCount === 0)
          put(
            element,
            failure(error, () => load()),
          );
      }
    };
  }
  const runs = (wanted, query) =>
    call('GET', 'runs', { query: { state: wanted, limit: READ, ...query }, signal });
  const titlesOf = (listed) =>
    learnTitles(
      listed.map(({ task_id }) => task_id),
      signal,
    );

  const loadUnderWay = shown(now, async (after) => {
    const lists = await Promise.all(underWayStates.map((each) => runs(each, { after })));
    const sooner = (a, b) => Date.parse(a.run_at) - Date.parse(b.run_at);
    const under = lists.flatMap(({ items }) => items.sort(sooner)).slice(0, SHOWN);
    await titlesOf(under);
    const [running, ...waiting] = lists.map(({ total }) => total);
    figures.running = running;
    figures.waiting = waiting.reduce((sum, each) => sum + each, 0);
    showUnderWay(under, figures.running + figures.waiting);
    drawTiles();
  });
  const loadFailed = shown(failed, async (after) => {
    const query = { after, start_time: dayAgo().toISOString(), include_errors: false };
    const { items, total } = await runs('failed', { ...query, limit: FAILED });
    await titlesOf(items);
    figures.failed = total;
    put(
      failed,
      runsTable(items, { empty: nothing('Nothing has failed. ', 'Good.'), state: false }),
    );
    drawTiles();
  });
  /** @param after position that what is read has to have passed */
  const load = (after) => Promise.all([loadUnderWay(after), loadFailed(after)]);

  const loadDue = shown(due, async () => {
    if (!may('tasks:read')) return;
    const until = new Date(Date.now() + HOUR).toISOString();
    showDue(await call('GET', 'tasks/due', { query: { until, limit: SHOWN }, signal }));
    drawTiles();
  });
  const loadTrend = shown(trend, async () => {
    summary = await call('GET', 'stats/summary', { query: { days: 7 }, signal });
    showTrend();
    drawTiles();
  });
  const loadLag = shown(lag, async () => {
    if (!may('ops')) return;
    const { projections } = await call('GET', 'projections', { signal });
    figures.lag = Math.max(0, ...projections.map(({ lag_seconds }) => lag_seconds));
    put(lag);
    drawTiles();
  });
  async function loadHealth() {
    try {
      health = await call('GET', 'health', { signal });
    } catch (error) {
      if (signal.aborted) return;
      health = { status: 'unhealthy', checks: [error] };
    }
    drawTiles();
  }
  const slowly = () => Promise.all([loadHealth(), loadDue(), loadTrend(), loadLag()]);

  function showDue({ items, total }) {
    for (const { task_id, title } of items) learnTitle({ id: task_id, title });
    figures.due = total;
    const rows = items.map(({ task_id, next_run_at }) => [taskLink(task_id), when(next_run_at)]);
    put(
      due,
      table('Due in the next hour', ['Task', num('When')], rows, 'Nothing is due.'),
      total > items.length && h('p.hint', {}, `and ${count(total - items.length)} more`),
    );
  }

  function showTrend() {
    const most = Math.max(1, ...summary.by_day.map((day) => day.total_runs));
    put(
      trend,
      h(
        'ol.days',
        {},
        summary.by_day.map(({ date, total_runs, failed_runs }) => {
          const good = h('span.good');
          const bad = h('span.bad');
          good.style.height = `${((total_runs - failed_runs) / most) * 100}%`;
          bad.style.height = `${(failed_runs / most) * 100}%`;
          return h(
            'li',
            { title: `${date}: ${count(total_runs)} runs, ${count(failed_runs)} failed` },
            h('span.bar', { 'aria-hidden': 'true' }, bad, good),
            h('strong', {}, count(total_runs)),
            h('span.soft', {}, weekday.format(new Date(`${date}T12:00:00`))),
            failed_runs > 0 &&
              h('span.fault', {}, `✗ ${count(failed_runs)}`, h('span.hidden', {}, ' failed')),
          );
        }),
      ),
    );
  }

  put(
    place,
    heading(
      'Overview',
      live.mark,
      may('ops') && button('Hold the service …', holdService, '.quiet'),
    ),
    tiles,
    lag,
    h(
      'div.columns.three',
      {},
      part('Under way', now),
      may('tasks:read') && part('Due in the next hour', due),
      part('Runs of the last days (UTC)', trend),
    ),
    part('Failed in the last 24 hours', failed),
  );
  await Promise.all([load(), slowly()]);
  if (signal.aborted) return;

  let reading = false;
  const beat = setInterval(() => {
    for (const element of now.querySelectorAll('[data-since]')) {
      element.textContent = duration(Date.now() - Date.parse(element.dataset.since));
    }
    if (changed === undefined || document.hidden) return;
    drawTiles();
    if (reading) return;
    const position = changed;
    changed = undefined;
    reading = true;
    void load(position).finally(() => (reading = false));
  }, BEAT);
  const rest = setInterval(() => {
    if (document.hidden) return;
    // What failed a day ago counts no longer.
    changed ??= null;
    void slowly();
  }, 15_000);
  signal.addEventListener('abort', () => {
    clearInterval(beat);
    clearInterval(rest);
  });
  void follow('runs/live', {
    signal,
    stateChanged: live.say,
    told(name, data) {
      changed = data.position ?? changed;
      if (name === 'run.ended') figures.ended += 1;
    },
  });
}
