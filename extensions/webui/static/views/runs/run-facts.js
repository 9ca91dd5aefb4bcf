// The facts of a run, its attempts and its events.

import { html } from '../../preact.js';
import { call } from '../../client.js';
import { useData } from '../../data.js';
import { duration, durationOf } from '../../times.js';
import { Json, State, Table } from '../../ui/elements.js';
import { Facts, Loaded, Section } from '../../ui/layout.js';
import { Instant, InstantAndDistance, RunLink, StreamLink } from '../../ui/names.js';

const MAX_EVENTS = 200;

/** Why a run was skipped. */
const skipReasons = {
  overlap: 'a run of its task had not ended',
  duplicate: 'another run has used its dedupe_key',
  paused: 'its task was paused',
  snoozed: 'its task was snoozed',
};
const skipText = (reason) => (reason in skipReasons ? `${reason}: ${skipReasons[reason]}` : reason);

export function RunFacts({ run, isOver }) {
  const { started_at: started, run_at: planned } = run;
  const waited = Math.max(0, Date.parse(started) - Date.parse(planned));
  const time = (at) => html`<${InstantAndDistance} at=${at} />`;
  const facts = [
    ['Trigger', run.trigger],
    ['Nominal time', time(run.scheduled_for)],
    ['Queued', time(run.queued_at)],
    !isOver && started === null && ['To start', time(planned)],
    ['Started', time(started)],
    ['Ended', time(run.finished_at)],
    ['Took', durationOf(run)],
    started !== null && ['Waited', duration(waited)],
    ['Attempt', run.attempt],
    ['Worker', run.lease_owner],
    run.skip_reason !== null && ['Skip reason', skipText(run.skip_reason)],
    run.retry_of !== null && ['Retry of', html`<${RunLink} id=${run.retry_of} />`],
    run.retried_by !== null && ['Retried by', html`<${RunLink} id=${run.retried_by} />`],
    run.parent_run_id !== null && ['Parent run', html`<${RunLink} id=${run.parent_run_id} />`],
    run.depth > 0 && ['Depth', run.depth],
    ['Task revision', run.task_revision],
    ['ID', html`<code>${run.id}</code>`],
  ];
  return html`<${Section} title="Facts"><${Facts} of=${facts} /><//>`;
}

const attemptColumns = [
  ['No.', 'attempt', 'num'],
  ['Result', ({ outcome }) => html`<${State} of=${outcome ?? 'running'} />`],
  ['Took', durationOf, 'num'],
  ['Worker', 'worker'],
  ['Error', ({ step, error }) => html`${step && html`<code>${step}</code>`} ${error}`, 'grow'],
];

export const Attempts = ({ attempts }) =>
  html`<${Section} title="Attempts">
    <${Table} caption="Attempts" columns=${attemptColumns} items=${attempts}
      rowKey="attempt" />
  <//>`;

export function RunEvents({ run }) {
  const stream = `run-${run.id}`;
  const events = useData(
    (signal) => call('GET', `streams/${stream}`, { query: { limit: MAX_EVENTS }, signal }),
    [run],
  );
  const isMore = (events.data?.next_from ?? null) !== null;
  const text = isMore ? 'There are more. Step through them' : 'Step through them';
  return html`<${Section} title="Events" aside=${html`<${StreamLink} stream=${stream}>${text}<//>`}>
    <${Loaded} of=${events}>
      ${({ items }) => html`<${Table} caption="Events" columns=${eventColumns} items=${items}
        rowKey="revision" />`}
    <//>
  <//>`;
}

const eventColumns = [
  ['No.', 'revision', 'num'],
  ['Type', 'type'],
  ['At', ({ created_at: at }) => html`<${Instant} at=${at} />`],
  [
    'Data',
    ({ revision, data }) =>
      html`<details>
        <summary>data</summary><${Json} label="Data of event ${revision}" value=${data} />
      </details>`,
    'grow',
  ],
];
