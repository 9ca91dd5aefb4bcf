// The list of tasks, with search, filters and what can be done to each.

import { call, may } from './client.js';
import {
  choice,
  failure,
  h,
  heading,
  labelled,
  minor,
  nothing,
  num,
  put,
  state,
  table,
} from './dom.js';
import { learnTitle } from './names.js';
import { keepInAddress, Pages, settled, turns } from './paging.js';
import { taskActions } from './task-actions.js';
import { when } from './times.js';

const PAGE = 25;

export async function tasksView(place, { query, signal }) {
  const search = h('input', { type: 'search', value: query.get('search') ?? '' });
  const status = choice([['', 'any'], 'active', 'paused', 'canceled'], query.get('status') ?? '');
  const kind = choice(
    [['', 'any'], 'cron', 'rrule', 'once', 'event'],
    query.get('schedule_kind') ?? '',
  );
  const tag = h('input', { value: query.get('tag') ?? '' });
  const results = h('div', { 'aria-live': 'polite' });
  const pages = new Pages();
  const nextTurn = turns(signal);

  async function load() {
    const isLatest = nextTurn();
    const filters = {
      search: search.value.trim(),
      status: status.value,
      schedule_kind: kind.value,
      tag: tag.value.trim(),
    };
    keepInAddress('tasks', filters);
    try {
      const page = await call('GET', 'tasks', {
        query: { ...filters, limit: PAGE, cursor: pages.cursor },
        signal,
      });
      // An answer to what was typed before is of no use any more.
      if (isLatest()) show(page, Object.values(filters).some(Boolean));
    } catch (error) {
      if (isLatest()) put(results, failure(error, load));
    }
  }

  function show(page, filtered) {
    const rows = page.items.map((task) => {
      learnTitle(task);
      return [
        [
          h('a.name', { href: `#/tasks/${task.id}` }, task.title),
          task.tags.length > 0 && [' ', task.tags.map((each) => h('span.tag', {}, each))],
        ],
        state(task.status),
        scheduleOf(task),
        task.exhausted ? h('span.soft', {}, 'ended') : when(task.next_run_at),
        when(task.last_run_at),
        h('div.row', {}, taskActions(task, load, true)),
      ];
    });
    const columns = [
      'Title',
      'Status',
      minor('Schedule'),
      'Next',
      minor('Last run'),
      num('Actions'),
    ];
    const empty = filtered
      ? nothing('No task is like that.', 'Loosen the filters.')
      : nothing(
          'There is no task yet.',
          may('tasks:write') && h('a', { href: '#/tasks/new' }, 'Create the first one'),
        );
    put(results, table('Tasks', columns, rows, empty), pages.bar(page, 'task', load));
  }

  const changed = settled(
    200,
    () => {
      pages.reset();
      return load();
    },
    signal,
  );
  for (const control of [search, status, kind, tag]) control.addEventListener('input', changed);

  put(
    place,
    heading(
      'Tasks',
      null,
      may('tasks:write') && h('a.button.main-action', { href: '#/tasks/new' }, 'New task'),
    ),
    h(
      'div.row.filters',
      { role: 'search' },
      labelled('Search in titles', search),
      labelled('Status', status),
      labelled('Kind', kind),
      labelled('Tag', tag),
    ),
    results,
  );
  await load();
}

/** When a task fires: in words, and as it was written. */
export function scheduleOf({ schedule_kind, schedule_expr, schedule_text }) {
  return [
    h('div.words', {}, schedule_text),
    h('span.soft', {}, `${schedule_kind} `),
    h('code', {}, schedule_expr ?? '#'),
  ];
}
