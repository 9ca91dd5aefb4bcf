// The list of tasks, with filters and the commands of each.

import { html } from '../preact.js';
import { call, may } from '../client.js';
import { useData } from '../data.js';
import { filtersIn, useFilters } from '../filters.js';
import { learnTitle } from '../names.js';
import { Heading, Loaded, Nothing, Pages, State, Table, Tags, minor, num } from '../ui/elements.js';
import { Filters } from '../ui/field.js';
import { When } from '../ui/names.js';
import { TaskActions } from './task-actions.js';

const PAGE = 25;
const fields = [
  { name: 'search', label: 'Search in titles', type: 'search' },
  { name: 'status', label: 'Status', options: ['', 'active', 'paused', 'canceled'] },
  { name: 'schedule_kind', label: 'Kind', options: ['', 'cron', 'rrule', 'once', 'event'] },
  { name: 'tag', label: 'Tag' },
];

export function TasksView({ query }) {
  const list = useFilters(
    'tasks',
    filtersIn(
      query,
      fields.map(({ name }) => name),
    ),
  );
  const { filters, cursors } = list.asked;
  const isFiltered = Object.values(filters).some(Boolean);
  const tasks = useData(
    async (signal) => {
      const asked = { ...filters, limit: PAGE, cursor: cursors.at(-1) };
      const page = await call('GET', 'tasks', { query: asked, signal });
      page.items.forEach(learnTitle);
      return page;
    },
    [list.asked],
  );
  const create = (text, kind) =>
    may('tasks:write') && html`<a class=${kind} href="#/tasks/new">${text}</a>`;
  const empty = isFiltered
    ? html`<${Nothing} text="No task matches.">Loosen the filters.<//>`
    : html`<${Nothing} text="There is no task yet.">${create('Create the first one')}<//>`;
  return html`<${Heading} title="Tasks">${create('New task', 'button main-action')}<//>
    <${Filters} list=${list} fields=${fields} />
    <div class="results" aria-live="polite">
      <${Loaded} of=${tasks}>
        ${(page) => html`<${TasksTable} tasks=${page.items} done=${tasks.reload} empty=${empty} />
          <${Pages} page=${page} list=${list} one="task" />`}
      <//>
    </div>`;
}

function TasksTable({ tasks, done, empty }) {
  const columns = ['Title', 'Status', minor('Schedule'), 'Next', minor('Last run'), num('Actions')];
  const rows = tasks.map((task) => ({
    key: task.id,
    cells: [
      html`<a class="name" href="#/tasks/${task.id}">${task.title}</a> <${Tags} of=${task.tags} />`,
      html`<${State} of=${task.status} />`,
      html`<${Schedule} ...${task} />`,
      task.exhausted
        ? html`<span class="soft">ended</span>`
        : html`<${When} at=${task.next_run_at} />`,
      html`<${When} at=${task.last_run_at} />`,
      html`<div class="row"><${TaskActions} task=${task} done=${done} isSmall /></div>`,
    ],
  }));
  return html`<${Table} caption="Tasks" columns=${columns} rows=${rows} empty=${empty} />`;
}

/** When a task fires: in words, and as it was written. */
export const Schedule = ({
  schedule_kind: kind,
  schedule_expr: expression,
  schedule_text: words,
}) =>
  html`<div class="words">${words}</div>
    <span class="soft">${kind} </span><code>${expression ?? '#'}</code>`;
