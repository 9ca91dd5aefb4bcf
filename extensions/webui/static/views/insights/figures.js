// The charts of the insights: throughput, durations and failures.

import { html } from '../../preact.js';
import { count, counted, duration, percent } from '../../times.js';
import { Bars, Lines } from '../../ui/bars.js';
import { Button } from '../../ui/elements.js';
import { Section } from '../../ui/layout.js';
import { csvOf, saveText } from '../../ui/csv.js';
import { bucketLabel, bucketName } from './buckets.js';

const took = (seconds) => (seconds === null ? '–' : duration(seconds * 1000));

/** The large figures of the whole period. */
export const Totals = ({ figures }) =>
  html`<div class="figures">
    <div><strong>${count(figures.total_runs)}</strong><span class="soft">runs ended</span></div>
    <div>
      <strong class=${figures.failed_runs > 0 ? 'bad' : ''}>${percent(figures.failure_rate)}</strong>
      <span class="soft">failed (${count(figures.failed_runs)})</span>
    </div>
    <div><strong>${took(figures.p50_execution_time_seconds)}</strong><span class="soft">p50</span></div>
    <div><strong>${took(figures.p95_execution_time_seconds)}</strong><span class="soft">p95</span></div>
    <div><strong>${count(figures.skipped_runs)}</strong><span class="soft">skipped</span></div>
  </div>`;

const figureColumns = [
  ['Runs', ({ total_runs: each }) => count(each), 'num'],
  ['Failed', ({ failed_runs: each }) => count(each), 'num'],
  ['Failure share', ({ failure_rate: each }) => percent(each), 'num'],
  ['p50', ({ p50_execution_time_seconds: each }) => took(each), 'num'],
  ['p95', ({ p95_execution_time_seconds: each }) => took(each), 'num'],
];

/** Throughput, durations and failure share by hour or day. */
export function Charts({ figures: { rows, timezone }, by }) {
  const items = rows.map((row) => {
    const name = bucketName(row.start, by, timezone);
    const about = `${name}: ${counted(row.total_runs, 'run')}, ${count(row.failed_runs)} failed`;
    const label = bucketLabel(row.start, by, timezone);
    return {
      ...row,
      key: row.start,
      label,
      name,
      about,
      all: row.total_runs,
      bad: row.failed_runs,
    };
  });
  const columns = [[by === 'hour' ? 'Hour' : 'Day', ({ name }) => name], ...figureColumns];
  const legend = html`<span class="soft"><span class="key">p50</span> <span class="key strong">p95</span></span>`;
  const lines = [
    { kind: 'p50', valueOf: ({ p50_execution_time_seconds: each }) => each },
    { kind: 'strong', valueOf: ({ p95_execution_time_seconds: each }) => each },
  ];
  const share = [{ kind: 'bad', valueOf: ({ failure_rate: each }) => each }];
  const per = `by ${by}, ${timezone}`;
  return html`<div class="columns three">
    <${Section} title="Runs" aside=${html`<span class="soft">${per}</span>`}>
      <${Bars} title="Runs ${per}" items=${items} columns=${columns} format=${count} />
    <//>
    <${Section} title="Duration" aside=${legend}>
      <${Lines} title="Duration ${per}" items=${items} lines=${lines} columns=${columns} format=${took} />
    <//>
    <${Section} title="Failure share" aside=${html`<span class="soft">${per}</span>`}>
      <${Lines} title="Failure share ${per}" items=${items} lines=${share} columns=${columns} format=${percent} />
    <//>
  </div>`;
}

const numbers = [
  ['runs', ({ total_runs: each }) => each],
  ['failed', ({ failed_runs: each }) => each],
  ['skipped', ({ skipped_runs: each }) => each],
  ['failure_share', ({ failure_rate: each }) => each],
  ['p50_seconds', ({ p50_execution_time_seconds: each }) => each],
  ['p95_seconds', ({ p95_execution_time_seconds: each }) => each],
];

/** The columns of figures in a CSV file. They follow the columns that name the task or the time. */
export const csvColumns = (first) => [...first, ...numbers];

/** Saves rows as a file. */
export const CsvButton = ({ name, columns, rows, text = 'Download CSV' }) =>
  html`<${Button} kind="small" label="${text}: ${name}"
    onClick=${() => saveText(`${name}.csv`, csvOf(columns, rows))}>${text}<//>`;
