// The messages to an agent's webhook, and the responses.

import { html } from '../../preact.js';
import { call } from '../../client.js';
import { duration } from '../../times.js';
import { AskButton } from '../../ui/dialog.js';
import { Json, Lines, Nothing, State, spaced } from '../../ui/elements.js';
import { Section } from '../../ui/layout.js';
import { Filters, List, filtersIn, useList } from '../../ui/list.js';
import { Instant, RunLink, When } from '../../ui/names.js';

const PAGE = 25;
const fields = [{ name: 'state', label: 'State', options: ['', 'pending', 'delivered', 'failed'] }];

export function Deliveries({ agent: { id, webhook_url: webhook }, query }) {
  const list = useList(`agents/${id}`, filtersIn(query, fields), (asked, signal) =>
    call('GET', `agents/${id}/webhooks/deliveries`, { query: { ...asked, limit: PAGE }, signal }),
  );
  const empty = html`<${Nothing} text="Nothing was sent.">
    ${webhook === null ? 'It has no webhook.' : 'Its webhook receives the runs of its own tasks.'}
  <//>`;
  return html`<${Section} title="Webhook deliveries">
    <${Filters} list=${list} fields=${fields} />
    <${List} list=${list} caption="Deliveries" columns=${columnsOf(id, list.reload)} one="delivery"
      several="deliveries" empty=${empty} />
  <//>`;
}

const columnsOf = (agent, done) => [
  ['When', ({ created_at: at }) => html`<${When} at=${at} />`],
  [
    'Event',
    ({ type, run_id: run }) => html`${type} ${run !== null && html`<${RunLink} id=${run} />`}`,
  ],
  [
    'State',
    ({ state, end, next_attempt_at: next }) => html`<${State} of=${state} />
      ${end !== null && html`<p class="hint">${spaced(end)}</p>`}
      ${next !== null && html`<p class="hint">again <${When} at=${next} /></p>`}`,
  ],
  ['Attempts', ({ attempts }) => attempts.length, 'num'],
  ['Last response', (delivery) => html`<${Responses} ...${delivery} />`, 'grow'],
  [
    'Actions',
    ({ id, state, type }) => {
      const dialog = { ...repeatDialog, path: `agents/${agent}/webhooks/deliveries/${id}/repeat` };
      return (
        state !== 'pending' &&
        html`<${AskButton} text="Send again" kind="small" label="Send again: ${type}" dialog=${dialog}
          done=${done} />`
      );
    },
    'num',
  ],
];

const repeatDialog = {
  title: 'Send it again?',
  text: 'The same message with the same ID. A receiver that has handled it should ignore it.',
  action: 'Send',
  done: 'The message is being sent again.',
};

/** The last response to a message, and all of them when opened. */
export function Responses({ attempts, payload }) {
  const last = attempts.at(-1);
  return html`<details>
    <summary>${last === undefined ? 'not sent yet' : (last.error ?? `status ${last.status}`)}</summary>
    ${attempts.map((each) => html`<${Attempt} ...${each} />`)}
    <${Json} label="Message" value=${payload} />
  </details>`;
}

const Attempt = ({ at, url, error, status, took_ms: took, answer }) =>
  html`<p class="hint"><${Instant} at=${at} /> ${url}, ${error ?? status}, ${duration(took)}</p>
    ${answer && html`<${Lines} label="Response">${answer}<//>`}`;
