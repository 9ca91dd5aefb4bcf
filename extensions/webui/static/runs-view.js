// The list of runs, with filters.

import { call } from './client.js';
import { button, choice, h, labelled, put, state, table } from './dom.js';
import { duration, tookOf, when } from './times.js';

const states = ['queued', 'running', 'retrying', 'succeeded', 'failed', 'canceled', 'skipped'];
const triggers = ['schedule', 'manual', 'event', 'backfill'];

export async function runsView(place, { query, signal }) {
  const status = choice([['', 'any'], ...states], query.get('state') ?? '');
  const trigger = choice([['', 'any'], ...triggers], '');
  const results = h('div', { 'aria-live': 'polite' });
  const task_id = query.get('task_id');
  let cursors = [undefined];
  const load = async () => {
    const filters = { state: status.value, trigger: trigger.value, task_id };
    const asks = { query: { ...filters, limit: 50, cursor: cursors.at(-1) }, signal };
    const { items, total, next_cursor } = await call('GET', 'runs', asks);
    const go = (change) => async () => {
      change();
      await again();
    };
    put(
      results,
      h('p.soft', {}, `${total} ${total === 1 ? 'run' : 'runs'}, page ${cursors.length}`),
      runsTable(items),
      h(
        'div.row',
        {},
        cursors.length > 1 &&
          button(
            'Newer',
            go(() => cursors.pop()),
          ),
        next_cursor !== null &&
          button(
            'Older',
            go(() => cursors.push(next_cursor)),
          ),
      ),
    );
  };
  const again = () =>
    load().catch((error) => {
      if (!signal.aborted) put(results, h('p.fault', { role: 'alert' }, error.message));
    });
  for (const control of [status, trigger]) {
    control.addEventListener('input', () => {
      cursors = [undefined];
      void again();
    });
  }
  put(
    place,
    h('h1', {}, task_id === null ? 'Runs' : 'Runs of a task'),
    h('div.row', {}, labelled('State', status), labelled('Begun by', trigger)),
    results,
  );
  await load();
}

/** @param runs as lists show them */
export function runsTable(runs, empty = 'No run is like that.') {
  const rows = runs.map((run) => {
    const took = tookOf(run);
    return [
      h('a', { href: `#/runs/${run.id}` }, run.id.slice(0, 8)),
      state(run.state),
      run.trigger,
      when(run.started_at ?? run.queued_at),
      took === null ? '–' : duration(took),
      run.error ?? run.skip_reason ?? '',
    ];
  });
  return table('Runs', ['Run', 'State', 'Begun by', 'Started', 'Took', 'Why'], rows, empty);
}
