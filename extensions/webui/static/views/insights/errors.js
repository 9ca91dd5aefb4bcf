// Failures by error, and one error over time.

import { html } from '../../preact.js';
import { count, counted } from '../../times.js';
import { Bars, Spark } from '../../ui/bars.js';
import { Button, Nothing, Table } from '../../ui/elements.js';
import { Facts, Loaded, Section } from '../../ui/layout.js';
import { RunLink, TaskLink, When } from '../../ui/names.js';
import { errorColumns, runsOfError } from '../overview/error-groups.js';
import { RetryGroup } from '../overview/retry-group.js';
import { may } from '../../client.js';
import { CsvButton } from './figures.js';
import { finePeriod } from './insights-data.js';
import { bucketLabel, bucketName } from './buckets.js';

const csvColumns = [
  ['error', ({ error }) => error],
  ['runs', ({ count: many }) => many],
  ['tasks', ({ task_count: many }) => many],
  ['first', ({ first }) => first],
  ['last', ({ last }) => last],
  ['last_run_id', ({ last_run_id: id }) => id],
];

/** @param choose called with the id of the error to look at */
export function ErrorSection({ found, asked, choose }) {
  const { period, error } = asked;
  const rows = found.data?.items ?? [];
  const aside = html`<${CsvButton} name="errors-${period}" columns=${csvColumns} rows=${rows} />`;
  return html`<${Section} title="By error, ${finePeriod(period)}" aside=${aside}>
    <${Loaded} of=${found}>
      ${(each) =>
        error === ''
          ? html`<${AllErrors} found=${each} choose=${choose} done=${found.reload} />`
          : html`<${OneError} found=${each} id=${error} done=${found.reload} />`}
    <//>
  <//>`;
}

function AllErrors({ found, choose, done }) {
  const { items, total, start, task } = found;
  const more = [
    ['Over time', ({ counts }) => html`<${Spark} counts=${counts} />`, 'minor'],
    [
      'Details',
      ({ id, error }) =>
        html`<${Button} kind="small" label="Show details: ${error}" onClick=${() => choose(id)}>Show<//>`,
    ],
  ];
  const left = total - items.length;
  return html`<${Table} caption="By error" columns=${errorColumns({ start, task, done, more })} items=${items}
      empty=${html`<${Nothing} text="No run failed in this period." />`} />
    ${left > 0 && html`<p class="hint">The ${count(items.length)} latest of ${counted(total, 'error')}.</p>`}`;
}

function OneError({ found, id, done }) {
  const { items, bucket_starts: starts, timezone, start, by, task } = found;
  const group = items.find((each) => each.id === id);
  if (group === undefined) {
    return html`<${Nothing} text="No run failed with this error in the period.">Choose a longer period.<//>`;
  }
  const bars = starts.map((at, n) => {
    const name = bucketName(at, by, timezone);
    const failed = group.counts[n] ?? 0;
    const about = `${name}: ${counted(failed, 'failure')}`;
    return { key: at, label: bucketLabel(at, by, timezone), name, about, all: failed, bad: failed };
  });
  const columns = [
    [by === 'hour' ? 'Hour' : 'Day', ({ name }) => name],
    ['Failures', ({ bad }) => count(bad), 'num'],
  ];
  const { last_run_id: run } = group;
  const facts = [
    ['Error', html`<code>${group.error}</code>`],
    ['Example', html`<code>${group.example}</code>`],
    [
      'Failures',
      html`<a href="#/${runsOfError(id, start, task && { task_id: task })}">${counted(group.count, 'failed run')}</a>`,
    ],
    ['First', html`<${When} at=${group.first} />`],
    ['Last', html`<${When} at=${group.last} />`],
    run !== null && ['Last run', html`<${RunLink} id=${run} />`],
  ];
  const taskColumns = [
    ['Task', ({ task_id: task }) => html`<${TaskLink} id=${task} />`],
    ['Failures', ({ count: many }) => count(many), 'num'],
    [
      'Runs',
      ({ task_id: task }) =>
        html`<a href="#/${runsOfError(id, start, { task_id: task })}">Failed runs</a>`,
      'num',
    ],
  ];
  return html`<${Facts} of=${facts} />
    <${Bars} title="Failures with this error" items=${bars} columns=${columns} format=${count} />
    <${Table} caption="Tasks with this error" columns=${taskColumns} items=${group.tasks} rowKey="task_id" />
    ${may('tasks:write') && html`<p><${RetryGroup} group=${group} start=${start} task=${task} done=${done} /></p>`}`;
}
