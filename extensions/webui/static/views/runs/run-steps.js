// The attempts and steps of a run over time.

import { html } from '../../preact.js';
import { useStore } from '../../store.js';
import { dateText } from '../../times.js';
import { Gantt } from '../../ui/charts.js';
import { Json, Lines, State } from '../../ui/elements.js';
import { Facts, Section } from '../../ui/layout.js';
import { Awaited, openWaits } from './run-waits.js';

export function RunSteps({ run }) {
  // Bars that are still open grow.
  useStore(() => (run.finished_at === null && run.started_at !== null ? Date.now() : 0));
  return html`<${Section} title="Steps">
    <${Gantt} title="Attempts and steps over time" bars=${barsOf(run)} />
  <//>`;
}

/** Attempts and, below each, the steps that ended in it; below the latest, also those that wait. */
function barsOf(run) {
  const { attempts, steps } = run;
  const until = (iso) => (iso === null ? Date.now() : Date.parse(iso));
  const known = new Set(attempts.map(({ attempt }) => attempt));
  return [
    // Results that were taken over from the run that this one retries.
    ...steps.filter(({ attempt }) => !known.has(attempt)).map(stepBar),
    ...attempts.flatMap(({ attempt, started_at: from, finished_at: to, outcome }) => [
      {
        label: `attempt ${attempt}`,
        level: 'attempt',
        from: Date.parse(from),
        to: until(to),
        state: outcome ?? (run.state === 'waiting' ? 'waiting' : 'running'),
      },
      ...steps.filter((step) => step.attempt === attempt).map(stepBar),
      ...(attempt === run.attempt ? openWaits(run).map(waitBar) : []),
    ]),
  ];
}

function waitBar(wait) {
  const { step, since, until } = wait;
  const facts = [
    ['Status', html`<${State} of="waiting" />`],
    ['Waits for', html`<${Awaited} wait=${wait} />`],
    ['From', dateText(since)],
    ['At most until', dateText(until)],
  ];
  return {
    label: step,
    level: 'step',
    from: Date.parse(since),
    to: Date.now(),
    state: 'waiting',
    more: html`<${Facts} of=${facts} />`,
  };
}

function stepBar({ step, started_at: from, finished_at: to, status, attempt, error, result }) {
  const facts = [
    ['Status', html`<${State} of=${status} />`],
    ['From', dateText(from)],
    ['To', dateText(to)],
    ['Attempt', attempt],
  ];
  const outcome =
    error === null
      ? html`<${Json} label="Result of ${step}" value=${result} />`
      : html`<${Lines} label="Error of ${step}">${error}<//>`;
  return {
    label: step,
    level: 'step',
    from: Date.parse(from),
    to: Date.parse(to),
    state: status,
    more: html`<${Facts} of=${facts} />${outcome}`,
  };
}
