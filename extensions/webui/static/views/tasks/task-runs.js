// The runs of a task: how many, how long they took, the latest ones, and the facts about the task beside them.

import { html, useEffect } from '../../preact.js';
import { call, may } from '../../client.js';
import { count, duration, elapsed, percent } from '../../times.js';
import { RunTimes } from '../../ui/charts.js';
import { Link, spaced } from '../../ui/elements.js';
import { Facts, Loaded, Section, Tile } from '../../ui/layout.js';
import { Actor, InstantAndDistance, When } from '../../ui/names.js';
import { useUpdates } from '../../ui/updates.js';
import { RunsTable } from '../runs/runs-table.js';
import { Schedule } from './tasks.js';

/** The delay in milliseconds between an event and the next read, since a task may run each second. */
const PACE = 1000;
const RUNS = { chart: 60, table: 10 };

/** @param {number} changes the number of events of its runs so far; `pausing` of the view */
export function TaskRuns({ task, version, changes, pausing }) {
  const { id } = task;
  const mayRead = may('runs:read');
  const runs = useUpdates(
    async (signal) => {
      if (!mayRead) return null;
      return (await call('GET', 'runs', { query: { task_id: id, limit: RUNS.chart }, signal }))
        .items;
    },
    [version],
    { pace: PACE, pausing },
  );
  const stats = useUpdates(
    (signal) => (mayRead ? call('GET', `task/${id}/stats`, { query: { days: 30 }, signal }) : null),
    [version],
    { pace: PACE, pausing },
  );
  useEffect(() => {
    if (changes === 0) return;
    runs.refresh();
    stats.refresh();
  }, [changes]);
  return html`<${Loaded} of=${stats}>${(each) => each && html`<${Stats} stats=${each} />`}<//>
    <div class="columns">
      <div><${Loaded} of=${runs}>${(each) => each && html`<${LatestRuns} id=${id} runs=${each} />`}<//></div>
      <div><${TaskFacts} task=${task} /></div>
    </div>`;
}

function Stats({ stats }) {
  const seconds = (value) => (value === null ? '–' : duration(value * 1000));
  const last = stats.last_failure && html`last <${When} at=${stats.last_failure} />`;
  return html`<div class="tiles">
    <${Tile} name="Runs in 30 days" value=${count(stats.total_runs)} />
    <${Tile} name="Succeeded" value=${percent(stats.success_rate)} />
    <${Tile} name="Failed" value=${count(stats.failed_runs)} more=${last} />
    <${Tile} name="Median duration" value=${seconds(stats.p50_execution_time_seconds)} />
    <${Tile} name="95th percentile" value=${seconds(stats.p95_execution_time_seconds)} />
  </div>`;
}

function LatestRuns({ id, runs }) {
  const ended = runs
    .filter(({ started_at: from, finished_at: to }) => from && to)
    .reverse()
    .map((run) => ({ took: elapsed(run), state: run.state, at: run.started_at, id: run.id }));
  const all = html`<a href="#/runs?task_id=${id}">All runs</a>`;
  return html`<${Section} title="Run durations"><${RunTimes} runs=${ended} /><//>
    <${Section} title="Latest runs" aside=${all}>
      <${RunsTable} runs=${runs.slice(0, RUNS.table)} columns=${{ hasTask: false }} empty="It has not run yet." />
    <//>`;
}

function TaskFacts({ task }) {
  const { concurrency_key: key, misfire_grace_seconds: grace, timeout_seconds: timeout } = task;
  const tags = task.tags.map(
    (tag) => html`<${Link} to="tasks?${new URLSearchParams({ tag })}" kind="tag">${tag}<//>`,
  );
  const next = task.exhausted
    ? 'none: the schedule has ended'
    : html`<${InstantAndDistance} at=${task.next_run_at} past="due" />`;
  const facts = [
    task.description !== task.title && ['Description', task.description],
    ['Schedule', html`<${Schedule} ...${task} />`],
    ['Next fire', next],
    ['Last run', html`<${InstantAndDistance} at=${task.last_run_at} />`],
    tags.length > 0 && ['Tags', tags],
    ['Priority', task.priority],
    ['Retries', `${task.max_retries}, ${spaced(task.backoff_strategy)}`],
    timeout !== null && ['Time limit', duration(timeout * 1000)],
    ['Overlap', spaced(task.overlap_policy)],
    ['Missed fires', `${task.misfire_policy}, grace ${duration(grace * 1000)}`],
    key !== null && ['Concurrency key', `${key} (at most ${task.concurrency_limit} at once)`],
    task.dedupe_key !== null && ['Dedupe key', task.dedupe_key],
    task.pause_after_failures !== null && ['Pauses after', `${task.pause_after_failures} failures`],
    task.max_runs !== null && ['Fires at most', count(task.max_runs)],
    ['Owner', html`<${Actor} id=${task.created_by} />`],
    ['Changed', html`<${InstantAndDistance} at=${task.updated_at} />`],
    ['ID', html`<code>${task.id}</code>`],
  ];
  return html`<${Section} title="Facts"><${Facts} of=${facts} /><//>`;
}
