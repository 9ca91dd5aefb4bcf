// A timeline from one hour ago to one hour ahead.

import { html } from '../../preact.js';
import { call, may } from '../../client.js';
import { learnTitle, learnTitles, titleOf } from '../../names.js';
import { clockText, count, counted } from '../../times.js';
import { Nothing, State, Table } from '../../ui/elements.js';
import { Unfolding } from '../../ui/layout.js';
import { RunLink, TaskLink, When } from '../../ui/names.js';

const HOUR = 3_600_000;
/** The most runs of each kind, and coming fires, that are drawn. */
const MAX_DRAWN = 200;

const lanes = ['Runs', 'Failed', 'Skipped'];
const laneOf = { failed: 1, skipped: 2 };
const LANE = 100 / lanes.length;
const tones = { failed: 'bad', skipped: 'wait', succeeded: 'good', canceled: 'idle' };

/** Runs that started, failed or were skipped in the last hour, and the fires of the next one. */
export async function readTimeline(signal, after) {
  const now = Date.now();
  const since = new Date(now - HOUR).toISOString();
  const runs = (query) =>
    call('GET', 'runs', {
      query: { limit: MAX_DRAWN, include_errors: false, after, ...query },
      signal,
    });
  const until = new Date(now + HOUR).toISOString();
  const due = may('tasks:read')
    ? call('GET', 'tasks/due', { query: { until, limit: MAX_DRAWN }, signal })
    : { items: [], total: 0 };
  const [started, failed, skipped, coming] = await Promise.all([
    runs({ start_time: since }),
    runs({ start_time: since, state: 'failed' }),
    // The newest ones, filtered by time below, because a skipped run has no start to query by.
    runs({ state: 'skipped' }),
    due,
  ]);
  for (const { task_id: id, title } of coming.items) learnTitle({ id, title });
  const recent = skipped.items.filter(({ queued_at: at }) => Date.parse(at) >= now - HOUR);
  const others = started.items.filter(({ state }) => state !== 'failed');
  const past = [...others, ...failed.items, ...recent].map((run) => ({
    id: run.id,
    run: run.id,
    task: run.task_id,
    state: run.state,
    at: run.started_at ?? run.queued_at,
    end: run.finished_at,
  }));
  await learnTitles(
    past.map(({ task }) => task),
    signal,
  );
  const next = coming.items.map(({ task_id: task, next_run_at: at }) => {
    return { id: `due ${task}`, run: null, task, state: 'due', at, end: null };
  });
  const hidden = started.total - started.items.length + (coming.total - coming.items.length);
  return { now, entries: [...past, ...next], ran: started.total, coming: coming.total, hidden };
}

export function Timeline({ now, entries, ran, coming, hidden }) {
  if (entries.length === 0) {
    return html`<${Nothing} text="Nothing ran in the last hour, and nothing is due in the next one." />`;
  }
  const from = now - HOUR;
  const placeOf = (instant) => Math.min(1000, Math.max(0, ((instant - from) / (2 * HOUR)) * 1000));
  const said = `${counted(ran, 'run')} in the last hour, ${counted(coming, 'task')} due in the next one`;
  const ticks = [-60, -30, 0, 30, 60].map((minutes) =>
    clockText(new Date(now + minutes * 60_000).toISOString()).slice(0, 5),
  );
  return html`<div class="timeline">
    <div class="lanes">
      <div class="names soft" aria-hidden="true">${lanes.map((name) => html`<span>${name}</span>`)}</div>
      <svg aria-hidden="true" viewBox="0 0 1000 100" preserveAspectRatio="none">
        ${lanes.map((name, n) => html`<rect class="lane" x="0" y=${n * LANE + 2} width="1000" height=${LANE - 4} />`)}
        ${entries.map((entry) => html`<${Mark} key=${entry.id} ...${entry} now=${now} placeOf=${placeOf} />`)}
        <path class="now" d="M500 0V100" />
      </svg>
      <div class="axis" aria-hidden="true">${ticks.map((tick) => html`<span>${tick}</span>`)}</div>
    </div>
    <p class="hint">${said}${hidden > 0 && `; ${count(hidden)} of them are not drawn`}.</p>
    <${Unfolding} kind="numbers" summary="As a list">
      ${() => html`<${Table} caption="Timeline" columns=${columns} items=${entries.toSorted(byTime)} />`}
    <//>
  </div>`;
}

/**
 * A mark from the start to the end of a run, or a thin one for an entry without a duration. It links to the run or
 * task.
 */
function Mark({ run, task, state, at, end, now, placeOf }) {
  const start = placeOf(Date.parse(at));
  const isOpen = end === null && state !== 'due' && state !== 'skipped';
  const stop = end === null ? (isOpen ? placeOf(now) : start) : placeOf(Date.parse(end));
  const lane = laneOf[state] ?? 0;
  const tone = state === 'due' ? 'coming' : (tones[state] ?? 'busy');
  return html`<a href="#/${run === null ? `tasks/${task}` : `runs/${run}`}" tabindex="-1">
    <title>${titleOf(task)}: ${state}, ${clockText(at)}</title>
    <rect class="mark ${tone}" x=${start} y=${lane * LANE + 7} width=${Math.max(2, stop - start)}
      height=${LANE - 14} />
  </a>`;
}

const byTime = (one, other) => Date.parse(other.at) - Date.parse(one.at);

const columns = [
  ['When', ({ at }) => html`<${When} at=${at} />`],
  ['Task', ({ task }) => html`<${TaskLink} id=${task} />`],
  ['State', ({ state }) => html`<${State} of=${state} />`],
  ['Run', ({ run }) => (run === null ? '–' : html`<${RunLink} id=${run} />`)],
];
