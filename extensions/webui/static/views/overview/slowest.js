// The slowest tasks of the last 24 hours.

import { html } from '../../preact.js';
import { call } from '../../client.js';
import { learnTitles } from '../../names.js';
import { count, duration } from '../../times.js';
import { Table } from '../../ui/elements.js';
import { TaskLink } from '../../ui/names.js';

const MAX_SHOWN = 5;

export async function readSlowest(signal, after) {
  const query = { sort: 'time', hours: 24, limit: MAX_SHOWN, after };
  const { items } = await call('GET', 'stats/tasks', { query, signal });
  await learnTitles(
    items.map(({ task_id: id }) => id),
    signal,
  );
  return items;
}

const took = (seconds) => (seconds === null ? '–' : duration(seconds * 1000));

const columns = [
  ['Task', ({ task_id: id }) => html`<${TaskLink} id=${id} />`],
  ['p95', ({ p95_execution_time_seconds: each }) => took(each), 'num'],
  [
    'Runs',
    ({ task_id: id, total_runs: many }) => html`<a href="#/runs?task_id=${id}">${count(many)}</a>`,
    'num',
  ],
  ['More', ({ task_id: id }) => html`<a href="#/insights?task=${id}">Insights</a>`, 'num'],
];

export const Slowest = ({ items }) =>
  html`<${Table} caption="Slowest tasks of the last 24 hours" columns=${columns} items=${items}
    rowKey="task_id" empty="No run ended in the last 24 hours." />`;
