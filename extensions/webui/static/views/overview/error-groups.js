// Failed runs of the last 24 hours by error, with their retry.

import { html } from '../../preact.js';
import { call, may } from '../../client.js';
import { learnTitles } from '../../names.js';
import { count } from '../../times.js';
import { Link, Nothing, Table } from '../../ui/elements.js';
import { RunLink, TaskLink, When } from '../../ui/names.js';
import { RetryGroup } from './retry-group.js';

/** Groups in the overview, and tasks of each. */
const MAX_GROUPS = 4;
const MAX_TASKS = 2;

export async function readErrorGroups(signal, after) {
  const query = { hours: 24, limit: MAX_GROUPS, after };
  const found = await call('GET', 'stats/errors', { query, signal });
  const ids = found.items.flatMap(({ tasks }) =>
    tasks.slice(0, MAX_TASKS).map((each) => each.task_id),
  );
  await learnTitles(ids, signal);
  return found;
}

/** @param done called when runs were retried; @param more further columns */
export const errorColumns = ({ start, done, more = [] }) => [
  ['Error', (group) => html`<${ErrorText} ...${group} />`, 'grow'],
  ['Runs', ({ count: many }) => html`<strong>${count(many)}</strong>`, 'num'],
  ['Tasks', (group) => html`<${Tasks} ...${group} />`],
  ...more,
  ['First', ({ first: at }) => html`<${When} at=${at} />`, 'num minor'],
  ['Last', ({ last: at }) => html`<${When} at=${at} />`, 'num'],
  [
    'Last run',
    ({ last_run_id: id }) => (id === null ? '–' : html`<${RunLink} id=${id} />`),
    'minor',
  ],
  may('tasks:write') && [
    'Retry',
    (group) => html`<${RetryGroup} ...${{ group, start, done }} />`,
    'num',
  ],
];

const ErrorText = ({ id, error, example }) =>
  html`<span class="clamp" title=${example}><${Link} to="insights?error=${id}">${error}<//></span>`;

function Tasks({ tasks, task_count: many, has_more_tasks: hasMore }) {
  const shown = tasks.slice(0, MAX_TASKS);
  const left = many - shown.length;
  return html`${shown.map(({ task_id: id }, n) => html`${n > 0 && ', '}<${TaskLink} key=${id} id=${id} />`)}
    ${left > 0 && html` <span class="soft">and ${count(left)} more${hasMore && ' at least'}</span>`}`;
}

export function ErrorGroups({ found, done }) {
  const { items, total, start } = found;
  const left = total - items.length;
  return html`<div class="error-groups">
    <${Table} caption="Failures by error" columns=${errorColumns({ start, done })} items=${items}
      empty=${html`<${Nothing} text="No run failed in the last 24 hours." />`} />
    ${left > 0 && html`<p class="hint"><a href="#/insights?period=24h&sort=failed">${count(left)} more</a></p>`}
  </div>`;
}
