// The list of runs: live, with quick ranges and a search, and commands for those that are ticked or match.

import { html, useState } from '../../preact.js';
import { call, may } from '../../client.js';
import { learnTitles } from '../../names.js';
import { Link } from '../../ui/elements.js';
import { Heading } from '../../ui/layout.js';
import { Filters, List, filtersIn, useList } from '../../ui/list.js';
import { TaskLink } from '../../ui/names.js';
import { BulkButtons } from './runs-bulk.js';
import {
  filterNames,
  parametersOf,
  searchFault,
  shownFields,
  tasksFor,
  withDefaults,
} from './runs-filters.js';
import { runColumns } from './runs-table.js';

const PAGE = 30;
const nothing = { items: [], total: 0, next_cursor: null };

const readRuns = async ({ after, cursor, ...filters }, signal) => {
  if (searchFault(filters) !== null) return { ...nothing, tasks: [] };
  const tasks = await tasksFor(filters, signal);
  const isTaskSearch = filters.by === 'task' && filters.q !== '';
  // Several tasks are offered to choose from.
  if (isTaskSearch && tasks.length !== 1) return { ...nothing, tasks };
  const found = parametersOf(filters, tasks[0]?.id);
  const query = { ...found, include_errors: false, limit: PAGE, cursor, after };
  const page = await call('GET', 'runs', { query, signal });
  const ids = [found.task_id, ...page.items.map((run) => run.task_id)];
  await learnTitles(ids.filter(Boolean), signal);
  return { ...page, tasks };
};

export function RunsView({ query }) {
  const list = useList('runs', withDefaults(filtersIn(query, filterNames)), readRuns);
  const [ticked, tick] = useState(() => new Set());
  const { filters } = list.asked;
  const tasks = list.data?.tasks ?? [];
  const task = tasks.length === 1 && filters.by === 'task' ? tasks[0].id : filters.task_id;
  const items = list.data?.items ?? [];
  // A run that is no longer shown is no longer meant.
  const shown = new Set(items.filter(({ id }) => ticked.has(id)).map(({ id }) => id));
  const beside =
    task !== '' &&
    list.data !== undefined &&
    html`<span class="soft">of <${TaskLink} id=${task} /> <a href="#/runs">all</a></span>`;
  const done = () => {
    tick(new Set());
    return list.reload();
  };
  const fault = searchFault(filters);
  return html`<${Heading} title="Runs" beside=${beside}>
      <${BulkButtons} filters=${filters} task=${task} ticked=${shown} done=${done} />
    <//>
    <${Filters} list=${list} fields=${shownFields(list.typed)} />
    <p class="fault" role="status">${fault}</p>
    ${tasks.length > 1 && html`<${TaskChoice} tasks=${tasks} />`}
    <${List} list=${list} caption="Runs" columns=${columnsOf({ task, items, ticked: shown, tick })} one="run"
      empty=${emptyText(filters, list.data)} />`;
}

const TaskChoice = ({ tasks }) =>
  html`<p class="row">Which task?
    ${tasks.map(({ id, title }) => html`<${Link} to="runs?task_id=${id}" kind="button small">${title}<//>`)}
  </p>`;

/** A search examines some thousand runs for each page. */
function emptyText({ by, q }, page) {
  if (page?.next_cursor && q !== '') return 'No match so far. Older runs are searched with Next.';
  if (by === 'task' && q !== '' && page?.tasks.length === 0)
    return 'No task has that in its title.';
  if (page?.tasks.length > 1) return 'Choose a task to see its runs.';
  return 'No run matches.';
}

function columnsOf({ task, items, ticked, tick }) {
  const columns = runColumns({ hasTask: task === '' });
  if (!may('tasks:write')) return columns;
  const isAll = items.length > 0 && ticked.size === items.length;
  const toggleAll = () => tick(isAll ? new Set() : new Set(items.map(({ id }) => id)));
  const toggle = (id) => {
    const next = new Set(ticked);
    if (!next.delete(id)) next.add(id);
    tick(next);
  };
  const box = (label, checked, onChange) =>
    html`<input type="checkbox" aria-label=${label} checked=${checked} onChange=${onChange} />`;
  const head = box('Tick all runs of this page', isAll, toggleAll);
  return [
    [head, ({ id }) => box(`Tick run ${id.slice(0, 8)}`, ticked.has(id), () => toggle(id))],
    ...columns,
  ];
}
