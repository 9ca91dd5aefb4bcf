// Why a run ran, what it waits for, and the runs of its task beside it.

import { html } from '../../preact.js';
import { call } from '../../client.js';
import { useData } from '../../data.js';
import { Dated } from '../../ui/dated.js';
import { Link, State } from '../../ui/elements.js';
import { Section } from '../../ui/layout.js';
import { Actor, InstantAndDistance, RunLink, When } from '../../ui/names.js';

/** Between two reads while a run waits: what is in its way changes without an event of the run. Milliseconds. */
const BEAT = 3000;
/** What the waits of its steps say better. */
const ofSteps = new Set(['timer', 'event', 'approval', 'run', 'callback', 'job']);

/** The explanation of a run as `useData` gives it, with the input of a step. */
export function useExplanation(run, step) {
  const isWaiting = ['queued', 'retrying', 'waiting'].includes(run.state);
  const whole = step === '' ? {} : { step };
  return useData(
    (signal) => call('GET', `runs/${run.id}/explain`, { query: whole, signal }),
    [run.id, run.state, run.attempt, run.steps.length, step],
    isWaiting ? { every: BEAT } : {},
  );
}

/** Why it ran, in a line, and the way to the runs beside it. */
export function Reason({ run, explanation }) {
  if (explanation === undefined) return html`<div class="row middle reason"></div>`;
  const { requested, previous_run_id: previous, next_run_id: next } = explanation;
  const { retry_of: retried, parent_run_id: parent, event } = run;
  return html`<div class="row middle reason">
    <span><${Dated} text=${requested.text} /></span>
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

/** What keeps the run from going on, beside the waits of its steps: who ordered it, when and why. */
export function Obstacles({ run, explanation }) {
  const all = explanation?.state === run.state ? explanation.waits_for : [];
  const shown = all.filter(({ kind }) => !ofSteps.has(kind));
  if (shown.length === 0) return null;
  return html`<${Section} title="Why it does not go on" kind="obstacles">
    <ul class="list">${shown.map((each) => html`<${Obstacle} key=${each.kind} ...${each} />`)}</ul>
  <//>`;
}

const Obstacle = ({ kind, text, since, until, by, by_name: name, reason, run_ids: runs }) =>
  html`<li>
    <${State} of=${kind} tone="wait" /> <${Dated} text=${text} />
    ${by !== null && html` Ordered by <${Actor} id=${by} name=${name} />`}
    ${since !== null && html` <span class="soft">since</span> <${InstantAndDistance} at=${since} />`}
    ${until !== null && html` <span class="soft">until</span> <${InstantAndDistance} at=${until} />`}
    ${reason !== null && html` <q>${reason}</q>`}
    ${runs.length > 0 && html` <span class="soft">held by</span> ${runs.map((id) => html`<${RunLink} id=${id} /> `)}`}
  </li>`;
