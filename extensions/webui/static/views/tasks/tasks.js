// The list of tasks: dense rows with their outcomes, filters as chips, saved views, and commands for ticked tasks.

import { html, useState } from '../../preact.js';
import { agentId, call, may, mayChange } from '../../client.js';
import { learnTitle } from '../../names.js';
import { Button, Nothing, Tags } from '../../ui/elements.js';
import { Heading } from '../../ui/layout.js';
import { Filters, List, filtersIn, useList } from '../../ui/list.js';
import { Actor, When } from '../../ui/names.js';
import { BulkActions } from './bulk-actions.js';
import { Chips, SavedViews } from './task-views.js';
import { Health, Outcomes, P95, useOutcomes } from './outcomes.js';

const PAGE = 25;
const fields = [
  { name: 'search', label: 'Search in titles', type: 'search' },
  { name: 'status', label: 'Status', options: ['', 'active', 'paused', 'canceled'] },
  { name: 'schedule_kind', label: 'Kind', options: ['', 'cron', 'rrule', 'once', 'event'] },
  { name: 'tag', label: 'Tag' },
];
/** Filters in the address that have no field. Chips, links and column headings set them. */
const others = [
  { name: 'created_by', label: 'Owner' },
  { name: 'secret', label: 'Secret' },
  { name: 'sort', label: 'Order' },
];

const readTasks = async (query, signal) => {
  const page = await call('GET', 'tasks', { query: { ...query, limit: PAGE }, signal });
  page.items.forEach(learnTitle);
  return page;
};

export function TasksView({ query }) {
  const list = useList('tasks', filtersIn(query, [...fields, ...others]), readTasks);
  const shown = list.data?.items ?? [];
  const outcomes = useOutcomes(
    shown.map(({ id }) => id),
    list.liveness === 'paused',
  );
  const [ticked, setTicked] = useState(() => new Set());
  const { filters } = list.asked;
  const isFiltered = Object.entries(filters).some(([name, value]) => value && name !== 'sort');
  const create = (text, kind) =>
    may('tasks:write') && html`<a class=${kind} href="#/tasks/new">${text}</a>`;
  const empty = isFiltered
    ? html`<${Nothing} text="No task matches.">Loosen the filters.<//>`
    : html`<${Nothing} text="There is no task yet.">${create('Create the first one')}<//>`;
  const isMine = filters.created_by === agentId();
  // Only tasks that are ticked and still visible. A task that has left the page gets no command.
  const chosen = shown.filter(({ id }) => ticked.has(id));
  const columns = columnsOf({ list, shown, ticked, setTicked, outcomes });
  return html`<${Heading} title="Tasks">${create('New task', 'button main-action')}<//>
    <${SavedViews} filters=${filters} />
    <${Filters} list=${list} fields=${fields}>
      <button type="button" class="small" aria-pressed=${isMine}
        onClick=${() => list.change('created_by', 0)(isMine ? '' : agentId())}>Mine</button>
    <//>
    <${Chips} list=${list} />
    <${BulkActions} tasks=${chosen} done=${async (refused) => {
      setTicked(new Set(refused));
      await list.reload();
    }} />
    <${List} list=${list} caption="Tasks" columns=${columns} one="task" empty=${empty} />`;
}

function columnsOf({ list, shown, ticked, setTicked, outcomes }) {
  const changeable = shown.filter(isChangeable);
  const isAll = changeable.length > 0 && changeable.every(({ id }) => ticked.has(id));
  const tick = (ids, isOn) => {
    const next = new Set(ticked);
    for (const id of ids) {
      if (isOn) next.add(id);
      else next.delete(id);
    }
    setTicked(next);
  };
  const all = html`<input type="checkbox" aria-label="Select all tasks of this page" checked=${isAll}
    disabled=${changeable.length === 0}
    onChange=${(event) =>
      tick(
        changeable.map(({ id }) => id),
        event.target.checked,
      )} />`;
  const sorted = (text, order, arrow = '↑') =>
    html`<${SortButton} ...${{ list, text, order, arrow }} />`;
  // Sorting by these reveals something about runs.
  const seesRuns = may('runs:read');
  const outcomesOf = (id) => outcomes.data?.get(id);
  return [
    may('tasks:write') && [
      all,
      (
        task,
      ) => html`<input type="checkbox" aria-label="Select ${task.title}" disabled=${!isChangeable(task)}
        checked=${ticked.has(task.id)} onChange=${(event) => tick([task.id], event.target.checked)} />`,
      'tick',
    ],
    [
      sorted('Name', 'title'),
      ({ id, title, tags }) =>
        html`<a class="name" href="#/tasks/${id}">${title}</a> <${Tags} of=${tags} />`,
    ],
    ['Schedule', ({ schedule_text: words }) => html`<span class="words">${words}</span>`, 'minor'],
    ['Last 20 runs', ({ id }) => html`<${Outcomes} of=${outcomesOf(id)} />`],
    [
      seesRuns ? sorted('p95', 'p95', '↓') : 'p95',
      ({ id }) => html`<${P95} of=${outcomesOf(id)} />`,
      'num minor',
    ],
    [
      sorted('Next', 'next'),
      ({ exhausted, next_run_at: at }) =>
        exhausted ? html`<span class="soft">ended</span>` : html`<${When} at=${at} past="due" />`,
    ],
    [sorted('Owner', 'owner'), ({ created_by: id }) => html`<${Actor} id=${id} />`, 'minor'],
    [
      seesRuns ? sorted('Health', 'health') : 'Health',
      (task) => html`<${Health} task=${task} of=${outcomesOf(task.id)} />`,
    ],
  ];
}

const isChangeable = (task) => mayChange(task) && task.status !== 'canceled';

/** The heading of a sortable column. A second click restores the default order, newest first. */
function SortButton({ list, text, order, arrow }) {
  const isOn = list.asked.filters.sort === order;
  return html`<${Button} kind="quiet small" label="Sort by ${text.toLowerCase()}"
    onClick=${() => list.change('sort', 0)(isOn ? '' : order)}>${text}${isOn && html`<span aria-hidden="true"> ${arrow}</span>`}<//>`;
}

/** When a task fires: in words, and as it was written. */
export const Schedule = ({
  schedule_kind: kind,
  schedule_expr: expression,
  schedule_text: words,
}) =>
  html`<div class="words">${words}</div>
    <span class="soft">${kind} </span><code>${expression ?? '#'}</code>`;
