// The list of runs, updated live: quick ranges, a search, and commands for the ticked or all matching runs.

import { html, useState } from '../../preact.js';
import { call, may } from '../../client.js';
import { errorName, learnError, learnTitles } from '../../names.js';
import { Button, Link } from '../../ui/elements.js';
import { Heading } from '../../ui/layout.js';
import { Filters, List, filtersIn, useList } from '../../ui/list.js';
import { TaskLink } from '../../ui/names.js';
import { BulkButtons } from './runs-bulk.js';
import {
  filterNames,
  parametersOf,
  isTaskSearch,
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
  // If several tasks match, the person chooses one.
  if (isTaskSearch(filters) && tasks.length !== 1) return { ...nothing, tasks };
  const found = parametersOf(filters, tasks[0]?.id);
  const query = { ...found, include_errors: false, limit: PAGE, cursor, after };
  const page = await call('GET', 'runs', { query, signal });
  const ids = [found.task_id, ...page.items.map((run) => run.task_id)];
  await Promise.all([
    learnTitles(ids.filter(Boolean), signal),
    learnError(found.error_group, signal),
  ]);
  return { ...page, tasks };
};

export function RunsView({ query }) {
  const list = useList('runs', withDefaults(filtersIn(query, filterNames)), readRuns);
  const [ticked, tick] = useState(() => new Set());
  const { filters } = list.asked;
  const tasks = list.data?.tasks ?? [];
  const task = tasks.length === 1 && filters.by === 'task' ? tasks[0].id : filters.task_id;
  const items = list.data?.items ?? [];
  // A ticked run that is no longer shown is left out.
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
  // Without its one task, a search by task would select the runs of all tasks.
  const isKnown = list.matches && fault === null && (!isTaskSearch(filters) || tasks.length === 1);
  return html`<${Heading} title="Runs" beside=${beside}>
      ${(isKnown || shown.size > 0) && html`<${BulkButtons} filters=${filters} task=${task} ticked=${shown} done=${done} />`}
    <//>
    <${Filters} list=${list} fields=${shownFields(list.typed)} />
    ${filters.error_group !== '' && html`<${ErrorChip} list=${list} />`}
    <p class="fault" role="status">${fault}</p>
    ${tasks.length > 1 && html`<${TaskChoice} tasks=${tasks} />`}
    <${List} list=${list} caption="Runs" columns=${columnsOf({ task, items, ticked: shown, tick })} one="run"
      empty=${emptyText(filters, list.data)} />`;
}

/** The error filter as a button that removes it. */
function ErrorChip({ list }) {
  const text = `error “${errorName(list.asked.filters.error_group)}”`;
  return html`<div class="row middle chips" role="group" aria-label="Filters that are set">
    <${Button} kind="small chip" label="${text}, remove"
      onClick=${() => list.change('error_group', 0)('')}>${text}<span aria-hidden="true"> ×</span><//>
  </div>`;
}

const TaskChoice = ({ tasks }) =>
  html`<p class="row">Which task?
    ${tasks.map(({ id, title }) => html`<${Link} to="runs?task_id=${id}" kind="button small">${title}<//>`)}
  </p>`;

/** A search examines a few thousand runs for each page. */
function emptyText({ by, q, error_group: group }, page) {
  if (page?.next_cursor && (q !== '' || group !== ''))
    return 'No match so far. Older runs are searched with Next.';
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
