// Runs in a table, as several views show them.

import { html } from '../../preact.js';
import { durationOf } from '../../times.js';
import { State, Table } from '../../ui/elements.js';
import { RunLink, TaskLink, When } from '../../ui/names.js';
import { waitWords } from './run-waits.js';

/** Columns that other tables of runs have too. */
export const runColumn = ['Run', ({ id }) => html`<${RunLink} id=${id} />`];
export const taskColumn = ['Task', ({ task_id: id }) => html`<${TaskLink} id=${id} />`];
export const stateColumn = ['State', ({ state }) => html`<${State} of=${state} />`];
const otherColumns = [
  ['Trigger', 'trigger', 'minor'],
  ['Started', (run) => html`<${When} at=${run.started_at ?? run.queued_at} />`],
  ['Took', durationOf, 'num'],
  ['Why', (run) => html`<${Reason} ...${run} />`, 'grow'],
];

/** @param {boolean} hasTask whether the tasks are shown; `hasState`: the states */
export const runColumns = ({ hasTask = true, hasState = true }) => [
  runColumn,
  hasTask && taskColumn,
  hasState && stateColumn,
  ...otherColumns,
];

/** Runs as lists return them. @param columns which are shown, as {@link runColumns} takes it */
export const RunsTable = ({ runs, columns = {}, empty }) =>
  html`<${Table} caption="Runs" columns=${runColumns(columns)} items=${runs} empty=${empty} />`;

/** The first line of the error, why the run was skipped, or what it waits for. */
function Reason(run) {
  const { error, skip_reason: skipped, attempt, state } = run;
  if (state === 'waiting') return `waits for ${waitWords(run)}`;
  if (error !== null)
    return html`<span class="clamp" title=${error}>${error.split('\n')[0]}</span>`;
  if (skipped !== null) return skipped;
  if (attempt <= 1) return null;
  return html`<span class="soft">${state === 'succeeded' ? 'on' : 'in'} attempt ${attempt}</span>`;
}
