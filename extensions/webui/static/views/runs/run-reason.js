// Why a run ran, what blocks it, and links to its task's previous and next runs.

import { html } from '../../preact.js';
import { call } from '../../client.js';
import { TextWithTimes } from '../../ui/text-with-times.js';
import { Link, State } from '../../ui/elements.js';
import { Section } from '../../ui/layout.js';
import { Actor, InstantAndDistance, RunLink, When } from '../../ui/names.js';
import { useUpdates } from '../../ui/updates.js';

/**
 * The interval of reads in milliseconds while a run waits. What blocks a run can change without an event of the run.
 */
const BEAT = 3000;
/** The waits of steps, which another part of the view shows in more detail. */
const ofSteps = new Set(['timer', 'event', 'approval', 'run', 'callback', 'job']);

/** The explanation of a run, with the input of a step, as {@link useUpdates} returns it. @param pausing of the view */
export function useExplanation(run, step, pausing) {
  const isWaiting = ['queued', 'retrying', 'waiting'].includes(run.state);
  const whole = step === '' ? {} : { step };
  return useUpdates(
    (signal) => call('GET', `runs/${run.id}/explain`, { query: whole, signal }),
    [run.id, run.state, run.attempt, run.steps.length, step],
    { pausing, every: isWaiting ? BEAT : undefined },
  );
}

/** A line that says why it ran, with links to the previous and next runs. */
export function Reason({ run, explanation }) {
  if (explanation === undefined) return html`<div class="row middle reason"></div>`;
  const { requested, previous_run_id: previous, next_run_id: next } = explanation;
  const { retry_of: retried, parent_run_id: parent, event } = run;
  return html`<div class="row middle reason">
    <span><${TextWithTimes} text=${requested.text} /></span>
    ${requested.reason !== null && html`<q>${requested.reason}</q>`}
    <span class="soft"><${When} at=${requested.at} /></span>
    ${retried !== null && html`<${RunLink} id=${retried} prefix="Run " />`}
    ${parent !== null && html`<${RunLink} id=${parent} prefix="Run " />`}
    ${event && html`<${Link} to="runs?by=event_id&q=${event.id}">All runs of the event<//>`}
    <span class="neighbours">
      ${previous !== null && html`<${Link} to="runs/${previous}" kind="button small">← Previous run<//>`}
      ${next !== null && html`<${Link} to="runs/${next}" kind="button small">Next run →<//>`}
    </span>
  </div>`;
}

/**
 * What blocks the run, other than waits of its steps. For a command, also who gave it, when and why. Says so if nothing
 * blocks a run that has not started.
 */
export function Obstacles({ run, explanation }) {
  // The explanation may be of an earlier state.
  if (explanation?.state !== run.state) return null;
  const shown = explanation.waits_for.filter(({ kind }) => !ofSteps.has(kind));
  if (shown.length === 0 && run.state === 'queued') {
    return html`<${Section} title="Why it has not started" kind="obstacles">
      <p>Nothing blocks it. It will start as soon as a worker takes it.</p>
    <//>`;
  }
  if (shown.length === 0) return null;
  return html`<${Section} title="Why it is blocked" kind="obstacles">
    <ul class="list">${shown.map((each) => html`<${Obstacle} key=${each.kind} ...${each} />`)}</ul>
  <//>`;
}

const Obstacle = ({ kind, text, since, until, by, by_name: name, reason, run_ids: runs }) =>
  html`<li>
    <${State} of=${kind} tone="wait" /> <${TextWithTimes} text=${text} />
    ${by !== null && html` Ordered by <${Actor} id=${by} name=${name} />`}
    ${since !== null && html` <span class="soft">since</span> <${InstantAndDistance} at=${since} />`}
    ${until !== null && html` <span class="soft">until</span> <${InstantAndDistance} at=${until} />`}
    ${reason !== null && html` <q>${reason}</q>`}
    ${runs.length > 0 && html` <span class="soft">held by</span> ${runs.map((id) => html`<${RunLink} id=${id} /> `)}`}
  </li>`;
