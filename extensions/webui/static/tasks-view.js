// The list of tasks, with search, filters and what can be done to each.

import { call, may } from './client.js';
import { button, choice, h, labelled, put, state, table } from './dom.js';
import { taskActions } from './task-actions.js';
import { nearness } from './times.js';

const PAGE = 25;

export async function tasksView(place, { query, signal }) {
  const search = h('input', { type: 'search', value: query.get('search') ?? '' });
  const status = choice([['', 'any'], 'active', 'paused', 'canceled'], query.get('status') ?? '');
  const kind = choice([['', 'any'], 'cron', 'rrule', 'once', 'event'], query.get('kind') ?? '');
  const tag = h('input', { value: query.get('tag') ?? '' });
  const results = h('div', { 'aria-live': 'polite' });
  let asked = 0;
  let cursors = [undefined];

  async function load() {
    const turn = (asked += 1);
    const filters = {
      search: search.value.trim(),
      status: status.value,
      schedule_kind: kind.value,
      tag: tag.value.trim(),
    };
    const cursor = cursors.at(-1);
    const asks = { query: { ...filters, limit: PAGE, cursor }, signal };
    const page = await call('GET', 'tasks', asks);
    // An answer to what was typed before is of no use any more.
    if (turn === asked) show(page);
  }

  function show({ items, total, next_cursor }) {
    const rows = items.map((task) => [
      h('a', { href: `#/tasks/${task.id}` }, task.title),
      state(task.status),
      h('code', {}, scheduleText(task)),
      nearness(task.next_run_at),
      nearness(task.last_run_at),
      h('div.row', {}, taskActions(task, load, true)),
    ]);
    const heads = ['Title', 'Status', 'Schedule', 'Next', 'Last run', 'Actions'];
    const go = (change) => () => {
      change();
      return load().catch(fail);
    };
    put(
      results,
      h('p.soft', {}, `${total} ${total === 1 ? 'task' : 'tasks'}, page ${cursors.length}`),
      table('Tasks', heads, rows, 'No task is like that.'),
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
  }

  function fail(error) {
    if (!signal.aborted) put(results, h('p.fault', { role: 'alert' }, error.message));
  }

  let soon;
  function changed() {
    clearTimeout(soon);
    cursors = [undefined];
    soon = setTimeout(() => void load().catch(fail), 200);
  }
  for (const control of [search, status, kind, tag]) control.addEventListener('input', changed);

  put(
    place,
    h('h1', {}, 'Tasks'),
    h(
      'div.row',
      { role: 'search' },
      labelled('Search in titles', search),
      labelled('Status', status),
      labelled('Kind', kind),
      labelled('Tag', tag),
      may('tasks:write') && h('a.button.main-action', { href: '#/tasks/new' }, 'New task'),
    ),
    results,
  );
  await load();
}

export const scheduleText = ({ schedule_kind, schedule_expr, timezone }) =>
  schedule_kind === 'event' || schedule_kind === 'once'
    ? `${schedule_kind} ${schedule_expr ?? ''}`
    : `${schedule_kind} ${schedule_expr} (${timezone})`;
