// Failed runs of the last 24 hours by error, with a button that retries them.

import { html } from '../../preact.js';
import { call, may } from '../../client.js';
import { learnErrors, learnTitles } from '../../names.js';
import { count } from '../../times.js';
import { Link, Nothing, Table } from '../../ui/elements.js';
import { RunLink, TaskLink, When } from '../../ui/names.js';
import { RetryGroup } from './retry-group.js';

/** The most groups in the overview, and the most tasks named in each. */
const MAX_GROUPS = 4;
const MAX_TASKS = 2;

export async function readErrorGroups(signal, after) {
  const query = { hours: 24, limit: MAX_GROUPS, after };
  const found = await call('GET', 'stats/errors', { query, signal });
  const ids = found.items.flatMap(({ tasks }) =>
    tasks.slice(0, MAX_TASKS).map((each) => each.task_id),
  );
  await learnTitles(ids, signal);
  learnErrors(found.items);
  return found;
}

/** @param task the only task whose runs are meant; @param done called when runs were retried; @param more columns */
export const errorColumns = ({ start, task, done, more = [] }) => [
  ['Error', (group) => html`<${ErrorText} ...${group} />`, 'grow'],
  ['Runs', (group) => html`<strong><${RunsOf} ...${{ group, start, task }} /></strong>`, 'num'],
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
    (group) => html`<${RetryGroup} ...${{ group, start, task, done }} />`,
    'num',
  ],
];

const ErrorText = ({ id, error, example }) =>
  html`<span class="clamp" title=${example}><${Link} to="insights?error=${id}">${error}<//></span>`;

const RunsOf = ({ group: { id, count: many }, start, task }) =>
  html`<a href="#/${runsOfError(id, start, task && { task_id: task })}" title="List these runs">${count(many)}</a>`;

/** The address of the list of runs that started after an instant and failed with an error. */
export const runsOfError = (id, start, more = {}) =>
  `runs?${new URLSearchParams({ error_group: id, state: 'failed', since: start, ...more })}`;

function Tasks({ tasks, task_count: many, has_more_tasks: hasMore }) {
  const shown = tasks.slice(0, MAX_TASKS);
  const left = many - shown.length;
  return html`<div class="tasks">
    ${shown.map(({ task_id: id }, n) => html`${n > 0 && ', '}<${TaskLink} key=${id} id=${id} />`)}
    ${left > 0 && html` <span class="soft">and ${count(left)} more${hasMore && ' at least'}</span>`}
  </div>`;
}

export const ErrorGroups = ({ found: { items, start }, done }) =>
  html`<div class="error-groups">
    <${Table} caption="Failures by error" columns=${errorColumns({ start, done })} items=${items}
      empty=${html`<${Nothing} text="No run failed in the last 24 hours." />`} />
  </div>`;

/** How many errors the overview leaves out. It is in the head of the section, where it takes no space. */
export function MoreErrors({ total, items }) {
  const left = total - items.length;
  return left > 0 && html`<a href="#/insights?period=24h&sort=failed">${count(left)} more</a>`;
}
