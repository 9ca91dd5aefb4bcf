// Runs in a table, as several views show them.

import { html } from '../preact.js';
import { durationOf } from '../times.js';
import { State, Table, minor, num, wide } from '../ui/elements.js';
import { RunLink, TaskLink, When } from '../ui/names.js';

/**
 * @param runs as lists return them
 * @param {{task?: boolean, state?: boolean}} columns false leaves one out
 */
export function RunsTable({
  runs,
  columns: { task = true, state = true } = {},
  empty = 'No run matches.',
}) {
  const columns = [
    'Run',
    task && 'Task',
    state && 'State',
    minor('Trigger'),
    'Started',
    num('Took'),
  ];
  const rows = runs.map((run) => ({
    key: run.id,
    cells: [
      html`<${RunLink} id=${run.id} />`,
      html`<${TaskLink} id=${run.task_id} />`,
      html`<${State} of=${run.state} />`,
      run.trigger,
      html`<${When} at=${run.started_at ?? run.queued_at} />`,
      durationOf(run),
      html`<${Reason} ...${run} />`,
    ],
  }));
  return html`<${Table} caption="Runs" columns=${[...columns, wide('Why')]} rows=${rows} empty=${empty} />`;
}

/** The first line of the error, or why the run was skipped. */
function Reason({ error, skip_reason: skipped, attempt, state }) {
  if (error !== null)
    return html`<span class="clamp" title=${error}>${error.split('\n')[0]}</span>`;
  if (skipped !== null) return skipped;
  if (attempt <= 1) return null;
  return html`<span class="soft">${state === 'succeeded' ? 'on' : 'in'} attempt ${attempt}</span>`;
}
