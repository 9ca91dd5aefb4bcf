// The waits of a run's suspended steps.

import { html } from '../../preact.js';
import { Section } from '../../ui/layout.js';
import { Link, Table } from '../../ui/elements.js';
import { ApprovalButtons } from '../approvals/approval-buttons.js';
import { InstantAndDistance, RunLink, TaskLink, When } from '../../ui/names.js';

/** The waits of a run that have not ended. */
export const openWaits = ({ waits }) => waits.filter(({ resumed_by: by }) => by === null);

/** What a step waits for, by the kind of the wait. */
const texts = {
  timer: () => 'a time',
  event: ({ topic, if: condition }) =>
    html`an event of <code>${topic}</code>${condition !== null && html` where <code>${condition}</code>`}`,
  approval: ({ id, message }) => html`an approval: <${Link} to="approvals/${id}">${message}<//>`,
  run: ({ run_id: run, task_id: task }) =>
    html`the end of run <${RunLink} id=${run} /> of <${TaskLink} id=${task} />`,
  callback: () => 'a callback',
  job: (wait) => html`a worker’s result of <code>${wait.tool}</code><${Job} ...${wait} />`,
};

export const Awaited = ({ wait }) => texts[wait.kind](wait);

/** Why a job has no worker yet, or which worker has it and how far it is. */
const Job = ({ step, reason, progress }) =>
  html`${reason && html`<p class="hint">${reason}</p>`}
    ${progress !== undefined && html`<progress max="1" value=${progress} aria-label="Progress of ${step}" />`}`;

/** The kinds of waits in a few words, for a list of runs. */
const words = {
  timer: 'a time',
  event: 'an event',
  approval: 'an approval',
  run: 'a run',
  callback: 'a callback',
  job: 'a worker’s result',
};

/** `an approval, a time`: what a run waits for, each kind once. */
export const waitWords = (run) =>
  [...new Set(openWaits(run).map(({ kind }) => words[kind]))].join(', ');

const columns = [
  ['Step', ({ step }) => html`<code>${step}</code>`],
  ['Waits for', (wait) => html`<${Awaited} wait=${wait} />`, 'grow'],
  ['Since', ({ since }) => html`<${When} at=${since} />`],
  ['Until', ({ until }) => html`<${InstantAndDistance} at=${until} />`],
];
const actions = (done) => [
  'Actions',
  (wait) => wait.kind === 'approval' && html`<${ApprovalButtons} approval=${wait} done=${done} />`,
  'num',
];

/** Renders nothing for a run that waits for nothing. @param done called after a decision */
export function RunWaits({ run, done }) {
  const waits = openWaits(run);
  if (waits.length === 0) return null;
  const hasApproval = waits.some(({ kind }) => kind === 'approval');
  const shown = hasApproval ? [...columns, actions(done)] : columns;
  return html`<${Section} title="Waiting for">
    <${Table} caption="Waiting for" columns=${shown} items=${waits} />
  <//>`;
}
