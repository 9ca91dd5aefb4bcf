// The backfills of a task: how far each is, and an end to one that is under way.

import { call, mayChange, order } from './client.js';
import { ask, reasonField } from './dialog.js';
import { attempt, button, failure, h, num, part, put, state, table } from './dom.js';
import { count, moment } from './times.js';

const BEAT = 2000;

/** Shows them, as long as there are any; live while one is under way. */
export async function backfillsPart(place, task, signal) {
  async function load() {
    try {
      const query = { limit: 10 };
      show((await call('GET', `tasks/${task.id}/backfills`, { query, signal })).items);
    } catch (error) {
      if (!signal.aborted) put(place, failure(error, load));
    }
  }

  function show(items) {
    if (items.length === 0) {
      put(place);
      return;
    }
    const rows = items.map((each) => [
      [moment(each.from), ' to ', moment(each.to)],
      state(each.state),
      h('progress', {
        value: each.requested + each.existing,
        max: each.total,
        'aria-label': 'decided',
      }),
      count(each.total),
      count(each.existing),
      count(each.succeeded),
      count(each.failed),
      count(each.unfinished),
      mayChange(task) &&
        each.state === 'running' &&
        button('Cancel', () => cancel(each), '.danger.small'),
    ]);
    const heads = ['Span', 'State', 'Decided', num('Times'), num('Had run'), num('Succeeded')];
    put(
      place,
      part('Backfills', table('Backfills', [...heads, num('Failed'), num('Open'), ''], rows)),
    );
    if (items.some((each) => each.state === 'running' || each.unfinished > 0)) {
      const timer = setTimeout(() => void load(), BEAT);
      signal.addEventListener('abort', () => clearTimeout(timer));
    }
  }

  async function cancel({ id, requested, total }) {
    const went = await ask({
      title: 'Cancel this backfill?',
      text: `${requested} of ${total} are requested. Queued runs of it are canceled, running ones told to stop.`,
      action: 'Cancel the backfill',
      kind: '.danger',
      fields: [reasonField],
      act: ({ reason }) => order(`backfills/${id}/cancel`, { reason }),
      done: 'The backfill is canceled.',
    });
    if (went) await attempt(load);
  }

  await load();
}
