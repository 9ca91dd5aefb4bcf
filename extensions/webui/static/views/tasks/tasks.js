// The list of tasks, with filters and the commands of each.

import { html } from '../../preact.js';
import { call, may } from '../../client.js';
import { learnTitle } from '../../names.js';
import { Nothing, State, Tags } from '../../ui/elements.js';
import { Heading } from '../../ui/layout.js';
import { Filters, List, filtersIn, useList } from '../../ui/list.js';
import { When } from '../../ui/names.js';
import { TaskActions } from './task-actions.js';

const PAGE = 25;
const fields = [
  { name: 'search', label: 'Search in titles', type: 'search' },
  { name: 'status', label: 'Status', options: ['', 'active', 'paused', 'canceled'] },
  { name: 'schedule_kind', label: 'Kind', options: ['', 'cron', 'rrule', 'once', 'event'] },
  { name: 'tag', label: 'Tag' },
];

const readTasks = async (query, signal) => {
  const page = await call('GET', 'tasks', { query: { ...query, limit: PAGE }, signal });
  page.items.forEach(learnTitle);
  return page;
};

export function TasksView({ query }) {
  const list = useList('tasks', filtersIn(query, fields), readTasks);
  const isFiltered = Object.values(list.asked.filters).some(Boolean);
  const create = (text, kind) =>
    may('tasks:write') && html`<a class=${kind} href="#/tasks/new">${text}</a>`;
  const empty = isFiltered
    ? html`<${Nothing} text="No task matches.">Loosen the filters.<//>`
    : html`<${Nothing} text="There is no task yet.">${create('Create the first one')}<//>`;
  return html`<${Heading} title="Tasks">${create('New task', 'button main-action')}<//>
    <${Filters} list=${list} fields=${fields} />
    <${List} list=${list} caption="Tasks" columns=${columnsOf(list.reload)} one="task" empty=${empty} />`;
}

const columnsOf = (done) => [
  [
    'Title',
    ({ id, title, tags }) =>
      html`<a class="name" href="#/tasks/${id}">${title}</a> <${Tags} of=${tags} />`,
  ],
  ['Status', ({ status }) => html`<${State} of=${status} />`],
  ['Schedule', (task) => html`<${Schedule} ...${task} />`, 'minor'],
  [
    'Next',
    ({ exhausted, next_run_at: at }) =>
      exhausted ? html`<span class="soft">ended</span>` : html`<${When} at=${at} past="due" />`,
  ],
  ['Last run', ({ last_run_at: at }) => html`<${When} at=${at} />`, 'minor'],
  [
    'Actions',
    (task) => html`<div class="row"><${TaskActions} task=${task} done=${done} isSmall /></div>`,
    'num',
  ],
];

/** When a task fires: in words, and as it was written. */
export const Schedule = ({
  schedule_kind: kind,
  schedule_expr: expression,
  schedule_text: words,
}) =>
  html`<div class="words">${words}</div>
    <span class="soft">${kind} </span><code>${expression ?? '#'}</code>`;
