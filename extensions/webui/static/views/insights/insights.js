// Runs over time, by task and by error. All choices are in the address.

import { html } from '../../preact.js';
import { titleOf } from '../../names.js';
import { useStore } from '../../store.js';
import { count, duration, percent } from '../../times.js';
import { Button, Nothing, State, Table } from '../../ui/elements.js';
import { Heading, Loaded, Section } from '../../ui/layout.js';
import { Filters, filtersIn, useFilters } from '../../ui/list.js';
import { TaskLink, When } from '../../ui/names.js';
import { Updates, together, usePause, useUpdates } from '../../ui/updates.js';
import { shownZone } from '../../zones.js';
import { ErrorSection } from './errors.js';
import { Charts, CsvButton, Totals, csvColumns } from './figures.js';
import {
  chosen,
  finePeriod,
  orders,
  periods,
  readErrors,
  readFigures,
  readTasks,
} from './insights-data.js';

/** The interval of reads, in milliseconds. */
const BEAT = 15_000;

const fields = [
  {
    name: 'period',
    label: 'Period',
    options: Object.fromEntries(Object.entries(periods).map(([key, { name }]) => [key, name])),
  },
  { name: 'by', label: 'By', options: ['hour', 'day'] },
];
const kept = ['period', 'by', 'task', 'error', 'sort'].map((name) => ({ name }));

export function InsightsView({ query }) {
  const filters = useFilters('insights', chosen(filtersIn(query, kept)));
  const zone = useStore(shownZone);
  const asked = chosen(filters.asked.filters);
  const deps = [filters.asked, zone];
  const pausing = usePause();
  const polled = { every: BEAT, pausing };
  const figures = useUpdates((signal) => readFigures(asked, signal), deps, polled);
  const tasks = useUpdates((signal) => readTasks(asked, signal), deps, polled);
  const errors = useUpdates((signal) => readErrors(asked, signal), deps, polled);
  // A period begins with the interval that suits it: 31 days by hour would be 744 bars.
  const change = (name, delay) =>
    name === 'period'
      ? (period) => filters.changeAll({ period, by: '' })
      : filters.change(name, delay);
  const list = { ...filters, typed: { ...filters.typed, ...asked }, change };
  const updates = together(pausing, [figures, tasks, errors]);
  const beside = html`<span class="soft">${zone}</span><${Updates} of=${updates} />`;
  return html`<div class="insights">
    <${Heading} title="Insights" beside=${beside} />
    <${Filters} list=${list} fields=${fields}>
      <${Chosen} asked=${asked} change=${filters.change} errors=${errors.data} />
    <//>
    <${Loaded} of=${figures}>
      ${(each) => html`<${Overall} figures=${each} asked=${asked} />`}
    <//>
    <${ErrorSection} found=${errors} asked=${asked} choose=${(id) => filters.change('error', 0)(id)} />
    ${asked.task === '' && html`<${TaskSection} found=${tasks} asked=${asked} change=${filters.change} />`}
  </div>`;
}

/** Buttons that clear the choice of a task or an error. */
function Chosen({ asked: { task, error }, change, errors }) {
  const group = errors?.items.find(({ id }) => id === error);
  return html`<div class="row middle chips">
    ${
      task !== '' &&
      html`<span>of <${TaskLink} id=${task} /></span>
        <${Button} kind="small" onClick=${() => change('task', 0)('')}>All tasks<//>`
    }
    ${
      error !== '' &&
      html`<span>with the error <strong>${group?.error ?? error}</strong></span>
        <${Button} kind="small" onClick=${() => change('error', 0)('')}>All errors<//>`
    }
  </div>`;
}

const timeColumns = [['start', ({ start }) => start]];

function Overall({ figures, asked }) {
  const { period, task } = asked;
  const { by } = figures;
  const name = ['runs', by, period, task && titleOf(task)].filter(Boolean).join('-');
  // The data of an earlier choice may still be shown.
  if (figures.rows === undefined) return null;
  return html`<${Totals} figures=${figures} />
    <${Charts} figures=${figures} by=${by} />
    <p><${CsvButton} name=${name} columns=${csvColumns(timeColumns)} rows=${figures.rows}
      text="Download these figures as CSV" /></p>`;
}

const took = (seconds) => (seconds === null ? '–' : duration(seconds * 1000));

function taskColumns(change) {
  const choose = (id) => change('task', 0)(id);
  return [
    ['Task', ({ task_id: id }) => html`<${TaskLink} id=${id} />`],
    ['Now', ({ failing }) => failing && html`<${State} of="failed" />`],
    ['Runs', ({ total_runs: each }) => count(each), 'num'],
    ['Failed', ({ failed_runs: each }) => count(each), 'num'],
    ['Failure share', ({ failure_rate: each }) => percent(each), 'num'],
    ['p50', ({ p50_execution_time_seconds: each }) => took(each), 'num minor'],
    ['p95', ({ p95_execution_time_seconds: each }) => took(each), 'num'],
    ['Skipped', ({ skipped_runs: each }) => count(each), 'num minor'],
    ['Last failure', ({ last_failure: at }) => html`<${When} at=${at} />`, 'num minor'],
    [
      'Over time',
      ({ task_id: id }) =>
        html`<${Button} kind="small" label="Show over time: ${titleOf(id)}" onClick=${() => choose(id)}>Show<//>`,
      'num',
    ],
  ];
}

const taskCsv = csvColumns([
  ['task_id', ({ task_id: id }) => id],
  ['task', ({ task_id: id }) => titleOf(id)],
]);

function TaskSection({ found, asked, change }) {
  const { sort, period } = asked;
  const list = { typed: { sort }, change };
  const field = { name: 'sort', label: 'Tasks with', options: orders };
  const rows = found.data?.items ?? [];
  const aside = html`<div class="row middle">
    <${Filters} list=${list} fields=${[field]} label="Order of the tasks" />
    <${CsvButton} name="tasks-${sort}-${period}" columns=${taskCsv} rows=${rows} />
  </div>`;
  return html`<${Section} title="By task, ${finePeriod(period)}" aside=${aside}>
    <${Loaded} of=${found}>
      ${({
        items,
        total,
      }) => html`<${Table} caption="By task" columns=${taskColumns(change)} items=${items}
          rowKey="task_id" empty=${html`<${Nothing} text="No task to show." />`} />
        ${total > items.length && html`<p class="hint">The first ${count(items.length)} of ${count(total)} tasks.</p>`}`}
    <//>
  <//>`;
}
