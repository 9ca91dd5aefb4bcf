// Runs in a table, as several views show them.

import { h, minor, num, state, table, wide } from './dom.js';
import { runLink, taskLink } from './names.js';
import { duration, tookOf, when } from './times.js';

/**
 * @param runs as lists show them
 * @param {{task?: boolean, state?: boolean, empty?: string | Node}} options which columns are shown
 */
export function runsTable(
  runs,
  { task = true, state: states = true, empty = 'No run is like that.' } = {},
) {
  const columns = [
    'Run',
    task && 'Task',
    states && 'State',
    minor('Begun by'),
    'Started',
    num('Took'),
    wide('Why'),
  ].filter(Boolean);
  const rows = runs.map((run) => {
    const took = tookOf(run);
    return [
      runLink(run.id),
      task && taskLink(run.task_id),
      states && state(run.state),
      run.trigger,
      when(run.started_at ?? run.queued_at),
      took === null ? '–' : duration(took),
      why(run),
    ].filter((cell) => cell !== false);
  });
  return table('Runs', columns, rows, empty);
}

/** The error in one line, or why it was skipped. */
function why({ error, skip_reason, attempt, state: word }) {
  if (error !== null) return h('span.line', { title: error }, error.split('\n')[0]);
  if (skip_reason !== null) return skip_reason;
  return attempt > 1
    ? h('span.soft', {}, `${word === 'succeeded' ? 'at' : 'in'} attempt ${attempt}`)
    : '';
}
