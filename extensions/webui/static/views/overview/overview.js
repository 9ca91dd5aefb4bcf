// Running, due and failed runs, and the state of the service. Live.

import { html, useRef } from '../../preact.js';
import { call, may } from '../../client.js';
import { useData } from '../../data.js';
import { LiveMark, useLive } from '../../live.js';
import { learnTitle, learnTitles } from '../../names.js';
import { count, duration, localField, percent } from '../../times.js';
import { Days } from '../../ui/charts.js';
import { Nothing, State, Table } from '../../ui/elements.js';
import { Heading, Loaded, Section, Tile } from '../../ui/layout.js';
import { Running, When } from '../../ui/names.js';
import { concernsApprovals } from '../approvals/approvals.js';
import { HoldButton } from './banners.js';
import { RunsTable, runColumn, stateColumn, taskColumn } from '../runs/runs-table.js';

const HOUR = 3_600_000;
/** Between two reads of what changes live, and of the rest. Milliseconds. */
const PACE = 1000;
const BEAT = 15_000;
/** Runs and due tasks in the lists, failed runs, and runs of each state that are read. */
const MAX_SHOWN = 12;
const MAX_FAILED = 10;
const MAX_READ = 50;
const unfinished = ['running', 'waiting', 'retrying', 'queued'];
const dayAgo = () => new Date(Date.now() - 24 * HOUR);

const readRuns = (query, signal) => call('GET', 'runs', { query, signal });
const taskOf = ({ task_id: id }) => id;

/** The counts of unfinished runs; of those that started last in each state, those that have run longest. */
async function readUnfinished(signal, after) {
  const lists = await Promise.all(
    unfinished.map((state) => readRuns({ state, limit: MAX_READ, after }, signal)),
  );
  const byTime = (a, b) => Date.parse(a.run_at) - Date.parse(b.run_at);
  const runs = lists.flatMap(({ items }) => items.sort(byTime)).slice(0, MAX_SHOWN);
  await learnTitles(runs.map(taskOf), signal);
  const [running, waiting, retrying, queued] = lists.map(({ total }) => total);
  return { runs, running, waiting, queued: retrying + queued };
}

async function readFailed(signal, after) {
  const query = { state: 'failed', limit: MAX_FAILED, start_time: dayAgo().toISOString(), after };
  const failed = await readRuns({ ...query, include_errors: false }, signal);
  await learnTitles(failed.items.map(taskOf), signal);
  return failed;
}

/** The number of pending approvals; null if the agent may not know. */
async function readPending(signal, after) {
  if (!may('tasks:read')) return null;
  const query = { state: 'pending', limit: 1, after };
  return (await call('GET', 'approvals', { query, signal })).total;
}

async function readDue(signal) {
  if (!may('tasks:read')) return null;
  const query = { until: new Date(Date.now() + HOUR).toISOString(), limit: MAX_SHOWN };
  const due = await call('GET', 'tasks/due', { query, signal });
  for (const { task_id: id, title } of due.items) learnTitle({ id, title });
  return due;
}

/** The lag of the slowest projection in seconds; null if the agent may not know. */
async function readLag(signal) {
  if (!may('ops')) return null;
  const { projections } = await call('GET', 'projections', { signal });
  return Math.max(0, ...projections.map(({ lag_seconds: lag }) => lag));
}

async function readHealth(signal) {
  try {
    return await call('GET', 'health', { signal });
  } catch (error) {
    if (signal.aborted) throw error;
    return { status: 'unhealthy', checks: [error] };
  }
}

const readSummary = (signal) => call('GET', 'stats/summary', { query: { days: 7 }, signal });

export function OverviewView() {
  const active = useData(readUnfinished, [], { pace: PACE, every: BEAT });
  const failed = useData(readFailed, [], { pace: PACE, every: BEAT });
  const pending = useData(readPending, [], { pace: PACE, every: BEAT });
  const due = useData(readDue, [], { every: BEAT });
  const summary = useData(readSummary, [], { every: BEAT });
  const lag = useData(readLag, [], { every: BEAT });
  const health = useData(readHealth, [], { every: BEAT });
  const ended = useRef(0);
  const live = useLive('runs/live', (name, data) => {
    const { position } = data;
    if (name === 'run.ended') ended.current += 1;
    active.refresh(position);
    failed.refresh(position);
    if (concernsApprovals(name, data)) pending.refresh(position);
  });
  const figures = { active, failed, pending, due, summary, lag, health };
  const data = Object.fromEntries(Object.entries(figures).map(([key, each]) => [key, each.data]));
  return html`<${Heading} title="Overview" beside=${html`<${LiveMark} state=${live} />`}>
      ${may('ops') && html`<${HoldButton} />`}
    <//>
    <${Tiles} ...${data} ended=${ended.current} />
    <${Loaded} of=${lag}>${() => null}<//>
    <div class="columns three">
      <${Section} title="Running, waiting and queued">
        <${Loaded} of=${active}>${(each) => html`<${UnfinishedRuns} ...${each} />`}<//>
      <//>
      ${may('tasks:read') && html`<${DueSection} due=${due} />`}
      <${Section} title="Runs of the last days (UTC)">
        <${Loaded} of=${summary}>${(each) => html`<${Days} days=${each.by_day} />`}<//>
      <//>
    </div>
    <${Section} title="Failed in the last 24 hours">
      <${Loaded} of=${failed}>
        ${({ items }) => html`<${RunsTable} runs=${items} columns=${{ hasState: false }}
          empty=${html`<${Nothing} text="No failures." />`} />`}
      <//>
    <//>`;
}

/** Figures that were not read yet, or may not be read, are left out. */
function Tiles({ active, failed, pending, due, summary, lag, health, ended }) {
  const today = summary?.by_day.at(-1);
  const problem = health?.checks.find(({ status }) => status !== 'healthy')?.message;
  return html`<div class="tiles">
    <${Tile} name="Running" value=${active && count(active.running)} to="runs?state=running"
      more="${count(active?.queued ?? 0)} queued" />
    <${Tile} name="Waiting" value=${active && count(active.waiting)} to="runs?state=waiting" />
    <${Tile} name="To approve" value=${Number.isInteger(pending) ? count(pending) : null} to="approvals" />
    <${Tile} name="Due in the next hour" value=${due && count(due.total)} />
    <${Tile} name="Failed in 24 hours" value=${failed && count(failed.total)}
      to="runs?state=failed&since=${localField(dayAgo())}" />
    <${Tile} name="Ended today (UTC)" value=${today && count(today.total_runs)}
      more="${count(ended)} since you opened this page" />
    <${Tile} name="Succeeded in 7 days" value=${summary && percent(summary.success_rate)} />
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
const UnfinishedRuns = ({ runs, running, waiting, queued }) =>
  html`<${Table} caption="Running, waiting and queued" columns=${unfinishedColumns} items=${runs}
      empty="Nothing is running." />
    <${More} total=${running + waiting + queued} shown=${runs.length} />`;

const dueColumns = [
  taskColumn,
  ['When', ({ next_run_at: at }) => html`<${When} at=${at} past="due" />`, 'num'],
];
const DueSection = ({ due }) =>
  html`<${Section} title="Due in the next hour">
    <${Loaded} of=${due}>${(each) => html`<${DueTasks} ...${each} />`}<//>
  <//>`;
const DueTasks = ({ items, total }) =>
  html`<${Table} caption="Due in the next hour" columns=${dueColumns} items=${items}
      rowKey="task_id" empty="Nothing is due." />
    <${More} total=${total} shown=${items.length} />`;
