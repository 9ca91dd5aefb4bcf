// How the last runs of tasks ended, how long they take, and problems of a task.

import { html } from '../../preact.js';
import { call, may } from '../../client.js';
import { useData } from '../../data.js';
import { useStore } from '../../store.js';
import { count, duration } from '../../times.js';
import { PausedBy } from './task-notes.js';

/** The interval of reads, in milliseconds. */
const BEAT = 5000;
/** A task that has been due for this long is overdue. Milliseconds. */
const OVERDUE = 60_000;
const tones = {
  succeeded: 'good',
  failed: 'bad',
  canceled: 'idle',
  waiting: 'wait',
  retrying: 'wait',
};

/** The outcomes of tasks by id, read in one request. They stand still while the list `isPaused`. */
export function useOutcomes(ids, isPaused) {
  const key = ids.join();
  return useData(
    async (signal, after) => {
      if (key === '' || !may('runs:read')) return new Map();
      const { items } = await call('GET', 'tasks/outcomes', { query: { ids: key, after }, signal });
      const found = new Map(items.map((item) => [item.task_id, item]));
      // Tasks without runs are left out of the response.
      return new Map(ids.map((id) => [id, found.get(id) ?? { runs: [] }]));
    },
    [key],
    { every: BEAT, isPaused },
  );
}

/** A square for each run, the oldest at the left. Each leads to its run. */
export function Outcomes({ of }) {
  if (of === undefined) return null;
  if (of.runs.length === 0) return html`<span class="soft">none yet</span>`;
  const failed = of.runs.filter(({ state }) => state === 'failed').length;
  const label = `Last ${of.runs.length} runs, ${failed} failed`;
  return html`<span class="outcomes" role="group" aria-label=${label}>
    ${of.runs.toReversed().map(
      ({ id, state }) => html`<a key=${id} class=${tones[state] ?? 'busy'} href="#/runs/${id}"
          tabindex="-1" title=${state} aria-label=${state}></a>`,
    )}
  </span>`;
}

export const P95 = ({ of }) => {
  const seconds = of?.p95_execution_time_seconds ?? null;
  return seconds === null ? '–' : duration(seconds * 1000);
};

/** The problem of a task, highlighted, in the order of `sort=health`; a healthy task gets a subdued word. */
export function Health({ task, of }) {
  const isOverdue = useStore(
    () =>
      task.status === 'active' &&
      task.next_run_at !== null &&
      Date.parse(task.next_run_at) < Date.now() - OVERDUE,
  );
  if (task.status === 'canceled') return html`<span class="soft">canceled</span>`;
  if (task.status === 'paused') return html`<${PausedBy} task=${task} isShort />`;
  const ended = (of?.runs ?? []).filter(({ state }) => state === 'succeeded' || state === 'failed');
  const failed = ended.filter(({ state }) => state === 'failed').length;
  if (of?.failing) {
    const inRow = ended.findIndex(({ state }) => state !== 'failed');
    const failures = inRow === -1 ? ended.length : inRow;
    return html`<span class="state bad" data-state="failing">failing${failures > 1 && `, ${count(failures)} in a row`}</span>
      ${isOverdue && html` <span class="fault">overdue</span>`}`;
  }
  if (isOverdue) return html`<span class="state bad" data-state="overdue">overdue</span>`;
  if (of?.failed_in_period) {
    const share = failed > 0 ? `${failed} of ${ended.length} failed` : 'failed lately';
    return html`<span class="fault">${share}</span>`;
  }
  return html`<span class="soft">${task.exhausted ? 'ended' : ended.length === 0 ? 'new' : 'ok'}</span>`;
}
