// Unfinished runs and figures of the service, updated live.

import { html } from '../../preact.js';
import { call, may } from '../../client.js';
import { readHealth } from '../../health.js';
import { learnTitle, learnTitles } from '../../names.js';
import { count, duration } from '../../times.js';
import { State, Table } from '../../ui/elements.js';
import { Tile } from '../../ui/layout.js';
import { Running, When } from '../../ui/names.js';
import { runColumn, stateColumn, taskColumn } from '../runs/runs-table.js';

const HOUR = 3_600_000;
/** The most runs and due tasks in the lists, and the most runs read of each state. */
const MAX_SHOWN = 12;
const MAX_READ = 50;
const unfinished = ['running', 'waiting', 'retrying', 'queued'];

const readRuns = (query, signal) => call('GET', 'runs', { query, signal });

/** The counts of unfinished runs. Also, from the runs that started last in each state, the longest ones. */
export async function readUnfinished(signal, after) {
  const lists = await Promise.all(
    unfinished.map((state) => readRuns({ state, limit: MAX_READ, after }, signal)),
  );
  const byTime = (a, b) => Date.parse(a.run_at) - Date.parse(b.run_at);
  const runs = lists.flatMap(({ items }) => items.sort(byTime)).slice(0, MAX_SHOWN);
  await learnTitles(
    runs.map(({ task_id: id }) => id),
    signal,
  );
  const [running, waiting, retrying, queued] = lists.map(({ total }) => total);
  return { runs, running, waiting, queued: retrying + queued };
}

/** The number of pending approvals; null if the agent may not know. */
export async function readPending(signal, after) {
  if (!may('tasks:read')) return null;
  const query = { state: 'pending', limit: 1, after };
  return (await call('GET', 'approvals', { query, signal })).total;
}

export async function readDue(signal) {
  if (!may('tasks:read')) return null;
  const query = { until: new Date(Date.now() + HOUR).toISOString(), limit: MAX_SHOWN };
  const due = await call('GET', 'tasks/due', { query, signal });
  for (const { task_id: id, title } of due.items) learnTitle({ id, title });
  return due;
}

/**
 * The state of the projections: `lag` of the slowest in seconds, and `halted`, the names of those that are halted; null
 * if the agent may not know.
 */
export async function readProjections(signal) {
  if (!may('ops')) return null;
  const { projections } = await call('GET', 'projections', { signal });
  const halted = projections.filter(({ state }) => state === 'halted').map(({ name }) => name);
  return { lag: Math.max(0, ...projections.map(({ lag_seconds: lag }) => lag)), halted };
}

/** The service's health report. If it cannot be read, the service counts as unhealthy. */
export async function readTileHealth(signal) {
  try {
    return await readHealth(signal);
  } catch (error) {
    if (signal.aborted) throw error;
    return { status: 'unhealthy', checks: [error] };
  }
}

/** Figures are left out until they are read, or if the agent may not read them. */
export function Tiles({ active, pending, due, lag, health }) {
  const problem = health?.checks.find(({ status }) => status !== 'healthy')?.message;
  return html`<div class="tiles">
    <${Tile} name="Running" value=${active && count(active.running)} to="runs?state=running"
      more="${count(active?.queued ?? 0)} queued" />
    <${Tile} name="Waiting" value=${active && count(active.waiting)} to="runs?state=waiting" />
    <${Tile} name="To approve" value=${Number.isInteger(pending) ? count(pending) : null} to="approvals" />
    <${Tile} name="Due in the next hour" value=${due && count(due.total)} />
    <${Tile} name="Projection lag" value=${Number.isFinite(lag) ? duration(lag * 1000) : null} to="projections" />
    <${Tile} name="Health" value=${health && html`<${State} of=${health.status} />`} more=${problem} />
  </div>`;
}

const More = ({ total, shown }) =>
  total > shown && html`<p class="hint">and ${count(total - shown)} more</p>`;

const unfinishedColumns = [
  runColumn,
  taskColumn,
  stateColumn,
  [
    'For',
    ({ started_at: since, run_at: at }) =>
      since === null ? html`<${When} at=${at} />` : html`<${Running} since=${since} />`,
    'num',
  ],
];
export const UnfinishedRuns = ({ runs, running, waiting, queued }) =>
  html`<${Table} caption="Running, waiting and queued" columns=${unfinishedColumns} items=${runs}
      empty="Nothing is running." />
    <${More} total=${running + waiting + queued} shown=${runs.length} />`;

const dueColumns = [
  taskColumn,
  ['When', ({ next_run_at: at }) => html`<${When} at=${at} past="due" />`, 'num'],
];
export const DueTasks = ({ items, total }) =>
  html`<${Table} caption="Due in the next hour" columns=${dueColumns} items=${items}
      rowKey="task_id" empty="Nothing is due." />
    <${More} total=${total} shown=${items.length} />`;
