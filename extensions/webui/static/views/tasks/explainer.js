// Why a task fired at an instant, or did not.

import { html, useState } from '../../preact.js';
import { setAddress, useRemembered } from '../../address.js';
import { call } from '../../client.js';
import { useData } from '../../data.js';
import { getState } from '../../store.js';
import { isoOf, localField } from '../../times.js';
import { Link, State } from '../../ui/elements.js';
import { Facts, Loaded, Section } from '../../ui/layout.js';
import { Field } from '../../ui/field.js';
import { Instant, InstantAndDistance, StreamLink } from '../../ui/names.js';

/** The parameter of the address that holds the instant of the last question. */
const PARAMETER = 'explain';

/** @param {URLSearchParams} query of the address */
export function Explainer({ id, query }) {
  const asked = query.get(PARAMETER);
  const [instant, setInstant] = useRemembered(
    'instant to explain',
    () => asked ?? isoOf(localField(new Date())),
  );
  /** The last question; a new object each time, as the answer may change. */
  const [question, setQuestion] = useState(asked ? { at: asked } : null);
  const answer = useData(
    async (signal) => {
      if (question === null) return null;
      if (question.at === '') throw new Error('Enter a date and time.');
      return call('GET', `tasks/${id}/explain`, { query: question, signal });
    },
    [question],
  );
  const submit = (event) => {
    event.preventDefault();
    setQuestion({ at: instant });
    const parameters = new URLSearchParams(getState().address.query);
    parameters.set(PARAMETER, instant);
    setAddress(`tasks/${id}`, parameters);
  };
  return html`<${Section} title="Why did it fire, or not?">
    <form class="row" onSubmit=${submit}>
      <${Field} label="At" type="instant" value=${instant} onInput=${setInstant} />
      <button type="submit">Explain</button>
    </form>
    <div aria-live="polite">
      <${Loaded} of=${answer}>${(each) => each && html`<${Explanation} ...${each} />`}<//>
    </div>
  <//>`;
}

/** The explanation of an instant, in ISO 8601. */
export function ExplanationAt({ id, at }) {
  const answer = useData(
    (signal) => call('GET', `tasks/${id}/explain`, { query: { at }, signal }),
    [at],
  );
  return html`<h3>Why? <${Instant} at=${at} /></h3>
    <${Loaded} of=${answer}>${(each) => html`<${Explanation} ...${each} />`}<//>`;
}

function Explanation({ reason, message, run_id: run, previous_fire, next_fire, evidence }) {
  const events = evidence.map(
    ({ stream, revision, type }) =>
      html`<${StreamLink} stream=${stream} at=${revision}>${type}<//> `,
  );
  const facts = [
    run !== null && ['Run', html`<${Link} to="runs/${run}">${run}<//>`],
    ['Previous fire', html`<${InstantAndDistance} at=${previous_fire} />`],
    ['Next fire', html`<${InstantAndDistance} at=${next_fire} />`],
    events.length > 0 && ['Evidence', events],
  ];
  return html`<p><${State} of=${reason ?? 'open'} /> ${message}</p>
    <${Facts} of=${facts} />`;
}
