// The steps of a run's task as a graph, with what has become of each in the run.

import { html } from '../preact.js';
import { stepsOf } from '../step-layout.js';
import { StepGraph } from '../ui/graph.js';
import { Section } from '../ui/layout.js';
import { openWaits } from './run-waits.js';

/** @param task the run's, as it is now */
export function RunGraph({ run, task }) {
  const { pipeline } = task.payload;
  const isChanged = task.revision !== run.task_revision;
  return html`<${Section} title="Graph of steps">
    ${isChanged && html`<p class="hint">The task has been changed since. These are its steps now.</p>`}
    <${StepGraph} pipeline=${pipeline} states=${statesOf(run, stepsOf(pipeline))} />
  <//>`;
}

/** The step of an item of a `for_each`. */
const stepOf = (name) => name.replace(/\[\d+\]$/, '');

/** The states of steps, and of those in groups, by their ids. */
export function statesOf(run, steps) {
  const ends = endsOf(run);
  const waiting = new Set(openWaits(run).map(({ step }) => stepOf(step)));
  const { outcome, step: last } = run.attempts.at(-1) ?? {};
  const failed = outcome === 'failed' && last !== null ? stepOf(last) : null;
  const states = new Map();
  const decide = (id, mayHaveStarted) => {
    if (id === failed) return run.state === 'retrying' ? 'retrying' : 'failed';
    if (ends.has(id)) return ends.get(id);
    if (waiting.has(id)) return 'waiting';
    return mayHaveStarted ? started(run) : notStarted(run);
  };
  for (const { id, after, steps: children } of steps) {
    const mayHaveStarted = after.every((each) => ends.has(each) && each !== failed);
    for (const child of children) states.set(child.id, decide(child.id, mayHaveStarted));
    const isWaiting = children.some((child) => states.get(child.id) === 'waiting');
    const isOpen = !ends.has(id) && isWaiting;
    states.set(id, isOpen ? 'waiting' : decide(id, mayHaveStarted));
  }
  return states;
}

/** How steps ended. Those that failed in an earlier attempt are done again. */
function endsOf({ attempt: latest, attempts, steps }) {
  const own = new Set(attempts.map(({ attempt }) => attempt));
  const counted = steps.filter(({ attempt, status }) => status !== 'failed' || attempt === latest);
  return new Map(
    counted.map(({ step, status, attempt }) => [step, own.has(attempt) ? status : 'reused']),
  );
}

/** The state of a step that has not ended, and all that it comes after has. */
const started = ({ state }) =>
  ({ running: 'running', queued: 'queued', canceled: 'canceled', failed: 'canceled' })[state] ??
  notStarted({ state });

const notStarted = ({ state }) =>
  ['succeeded', 'failed', 'canceled', 'skipped'].includes(state) ? 'did_not_run' : 'pending';
