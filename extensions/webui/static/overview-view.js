// What goes on: runs under way, what is due, what has failed, and how far the views are. Live.

import { holdService } from './banners.js';
import { call, may } from './client.js';
import { button, failure, h, heading, num, nothing, part, put, state, table, tile } from './dom.js';
import { follow, liveMark } from './live.js';
import { learnTitle, learnTitles, taskLink } from './names.js';
import { runsTable } from './runs-table.js';
import { count, duration, percent, tookOf, when } from './times.js';

const HOUR = 3_600_000;
const BEAT = 1000;
/** How many runs under way, and due tasks, are shown, and of those that failed. */
const SHOWN = 12;
const FAILED = 10;
/** Of so many that began last, those that run longest are shown. */
const READ = 50;
const weekday = new Intl.DateTimeFormat('en-GB', { weekday: 'short', day: 'numeric' });
const underWayStates = ['running', 'retrying', 'queued'];

export async function overviewView(place, { signal }) {
  const tiles = h('div.tiles');
  const now = h('div');
  const failed = h('div');
  const due = h('div');
  const trend = h('div');
  const live = liveMark();
  const figures = { running: 0, waiting: 0, failed: 0, due: null, lag: null, ended: 0 };
  let health = null;
  let summary = null;

  function drawTiles() {
    const day = summary?.by_day.at(-1);
    put(
      tiles,
      tile(
        'Running',
        count(figures.running),
        `${count(figures.waiting)} waiting`,
        '#/runs?state=running',
      ),
      figures.due !== null && tile('Due in the next hour', figures.due),
      tile('Failed in 24 hours', count(figures.failed), null, '#/runs?state=failed'),
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
      return [
        h('a', { href: `#/runs/${run.id}` }, run.id.slice(0, 8)),
        taskLink(run.task_id),
        state(run.state),
        since,
      ];
    });
    put(
      now,
      table('Runs under way', ['Run', 'Task', 'State', num('For')], rows, 'Nothing runs now.'),
      total > runs.length && h('p.hint', {}, `and ${count(total - runs.length)} more`),
    );
  }

  /** @param after position that what is read has to have passed */
  async function load(after) {
    const runs = (wanted, query = {}) =>
      call('GET', 'runs', { query: { state: wanted, limit: READ, after, ...query }, signal });
    const since = new Date(Date.now() - 24 * HOUR).toISOString();
    const [failures, ...lists] = await Promise.all([
      runs('failed', { start_time: since, include_errors: false, limit: FAILED }),
      ...underWayStates.map((each) => runs(each)),
    ]);
    const sooner = (a, b) => Date.parse(a.run_at) - Date.parse(b.run_at);
    const under = lists.flatMap(({ items }) => items.sort(sooner)).slice(0, SHOWN);
    const shown = [...under, ...failures.items];
    await learnTitles(
      shown.map(({ task_id }) => task_id),
      signal,
    );
    const [running, ...waiting] = lists.map(({ total }) => total);
    figures.running = running;
    figures.waiting = waiting.reduce((sum, each) => sum + each, 0);
    figures.failed = failures.total;
    drawTiles();
    showUnderWay(under, figures.running + figures.waiting);
    put(
      failed,
      runsTable(failures.items, { empty: nothing('Nothing has failed. ', 'Good.'), state: false }),
    );
  }

  async function slowly() {
    const soon = new Date(Date.now() + HOUR).toISOString();
    const [checked, tasks, views, week] = await Promise.all([
      call('GET', 'health', { signal }).catch((error) => {
        if (signal.aborted) throw error;
        return { status: 'unhealthy', checks: [error] };
      }),
      may('tasks:read')
        ? call('GET', 'tasks/due', { query: { until: soon, limit: SHOWN }, signal })
        : null,
      may('ops') ? call('GET', 'projections', { signal }) : null,
      call('GET', 'stats/summary', { query: { days: 7 }, signal }),
    ]);
    health = checked;
    summary = week;
    if (views !== null)
      figures.lag = Math.max(0, ...views.projections.map((each) => each.lag_seconds));
    if (tasks !== null) showDue(tasks);
    showTrend();
    drawTiles();
  }

  function showDue({ items, total }) {
    for (const { task_id, title } of items) learnTitle({ id: task_id, title });
    figures.due = count(total);
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

  // What is told live says that something has changed, up to which position; what is shown is read.
  let changed;
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
    load(position)
      .catch((error) => {
        // The views are behind for a moment.
        if (error.status === 503) changed ??= position;
        else failed24(error);
      })
      .finally(() => (reading = false));
  }, BEAT);
  const rest = setInterval(() => {
    if (document.hidden) return;
    // What failed a day ago counts no longer.
    changed ??= null;
    void slowly().catch(failed24);
  }, 15_000);
  signal.addEventListener('abort', () => {
    clearInterval(beat);
    clearInterval(rest);
  });
  /** The banner says that the service does not answer; all else is said here. */
  function failed24(error) {
    if (!signal.aborted && error.status !== 0) put(failed, failure(error));
  }
  void follow('runs/live', {
    signal,
    stateChanged: live.say,
    told(name, data) {
      changed = data.position ?? changed;
      if (name === 'run.ended') figures.ended += 1;
    },
  });
}
