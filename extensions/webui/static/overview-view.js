// What goes on: runs under way, what is due, what has failed, and how far the views are. Live.

import { call, may } from './client.js';
import { h, part, put, state, table } from './dom.js';
import { follow } from './live.js';
import { runsTable } from './runs-view.js';
import { ago, duration, tookOf } from './times.js';

const HOUR = 3_600_000;
const BEAT = 1000;

export async function overviewView(place, { signal }) {
  const under = new Map();
  const tiles = h('div.tiles');
  const now = h('div');
  const failed = h('div');
  const due = h('div');
  const live = h('span.soft', { role: 'status' }, 'connecting …');
  const figures = { ended: 0, failures: [], due: null, lag: null, health: '' };

  function draw() {
    const tile = (text, value) =>
      h('div.tile', {}, h('span.soft', {}, text), h('strong', {}, value));
    put(
      tiles,
      tile('Under way', String(under.size)),
      tile('Due in the next hour', figures.due ?? '–'),
      tile('Failed lately', String(figures.failures.length)),
      tile('Ended since you look', String(figures.ended)),
      figures.lag !== null && tile('Lag of the views', duration(figures.lag * 1000)),
      tile('Health', figures.health),
    );
    const rows = [...under.values()].slice(0, 50).map((run) => {
      const took = tookOf(run);
      const what = h('a', { href: `#/runs/${run.id}` }, run.id.slice(0, 8));
      return [
        what,
        state(run.state),
        run.trigger,
        took === null ? ago(run.run_at) : duration(took),
      ];
    });
    put(
      now,
      table('Runs under way', ['Run', 'State', 'Begun by', 'For'], rows, 'Nothing runs now.'),
    );
    put(failed, runsTable(figures.failures.slice(0, 10), 'Nothing has failed.'));
  }

  async function load(after) {
    const runs = (wanted) =>
      call('GET', 'runs', { query: { state: wanted, limit: 50, after }, signal });
    const wanted = ['running', 'retrying', 'queued'];
    const [failures, ...lists] = await Promise.all([runs('failed'), ...wanted.map(runs)]);
    const dayAgo = Date.now() - 24 * HOUR;
    figures.failures = failures.items.filter(({ finished_at }) => Date.parse(finished_at) > dayAgo);
    under.clear();
    for (const { items } of lists) for (const run of items) under.set(run.id, run);
    draw();
  }

  async function slowly() {
    const [health, tasks, views] = await Promise.all([
      call('GET', 'health', { signal }).catch(() => ({ status: 'unhealthy' })),
      may('tasks:read')
        ? call('GET', 'tasks', { query: { status: 'active', limit: 200 }, signal })
        : null,
      may('ops') ? call('GET', 'projections', { signal }) : null,
    ]);
    figures.health = health.status;
    if (views !== null)
      figures.lag = Math.max(0, ...views.projections.map((each) => each.lag_seconds));
    if (tasks !== null) showDue(tasks);
    draw();
  }

  function showDue({ items, has_more }) {
    const until = Date.now() + HOUR;
    const soon = items
      .filter(({ next_run_at }) => next_run_at !== null && Date.parse(next_run_at) < until)
      .sort((a, b) => Date.parse(a.next_run_at) - Date.parse(b.next_run_at));
    figures.due = `${soon.length}${has_more ? '+' : ''}`;
    const rows = soon
      .slice(0, 15)
      .map((task) => [h('a', { href: `#/tasks/${task.id}` }, task.title), ago(task.next_run_at)]);
    put(
      due,
      table('Due in the next hour', ['Task', 'When'], rows, 'Nothing.'),
      has_more && h('p.hint', {}, `Of the ${items.length} newest active tasks.`),
    );
  }

  put(
    place,
    h('div.row.middle', {}, h('h1', {}, 'Overview'), live),
    tiles,
    h('div.columns', {}, part('Under way', now), part('Due in the next hour', due)),
    part('Failed in the last 24 hours', failed),
  );
  await Promise.all([load(), slowly()]);

  let dirty = false;
  let failure = false;
  const beat = setInterval(() => {
    if (dirty) draw();
    dirty = false;
  }, BEAT);
  const rest = setInterval(() => {
    void slowly().catch((error) => {
      if (!signal.aborted && !failure) live.textContent = error.message;
    });
  }, 15_000);
  signal.addEventListener('abort', () => {
    clearInterval(beat);
    clearInterval(rest);
  });
  void follow('runs/live', {
    signal,
    stateChanged(going) {
      failure = !going;
      live.textContent = going ? 'live' : 'not connected';
    },
    told(name, { run, position }) {
      dirty = true;
      // What happened between the lists and this stream is in the lists by now.
      if (name === 'live.started')
        void load(position).catch(() => (live.textContent = 'not connected'));
      if (run === undefined) return;
      if (name !== 'run.ended' && name !== 'run.skipped') under.set(run.id, run);
      else under.delete(run.id);
      if (name !== 'run.ended') return;
      figures.ended += 1;
      if (run.state === 'failed') figures.failures = [run, ...figures.failures].slice(0, 50);
    },
  });
}
