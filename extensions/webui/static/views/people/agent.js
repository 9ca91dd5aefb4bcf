// One agent: its scopes, its webhook, and the deliveries to it.

import { html } from '../../preact.js';
import { call } from '../../client.js';
import { useData } from '../../data.js';
import { duration } from '../../times.js';
import { AskButton } from '../../ui/dialog.js';
import { Json, Lines, Nothing, State, Tags, spaced } from '../../ui/elements.js';
import { Facts, Heading, LoadedView, Section } from '../../ui/layout.js';
import { Filters, List, useList } from '../../ui/list.js';
import { Instant, InstantAndDistance, RunLink, StreamLink, When } from '../../ui/names.js';

const PAGE = 25;
const fields = [{ name: 'state', label: 'State', options: ['', 'pending', 'delivered', 'failed'] }];
export function AgentView({ id }) {
  const agent = useData((signal) => call('GET', `agents/${id}`, { signal }), []);
  const list = useList(null, { state: '' }, (query, signal) =>
    call('GET', `agents/${id}/webhooks/deliveries`, { query: { ...query, limit: PAGE }, signal }),
  );
  const empty = html`<${Nothing} text="Nothing was sent.">Its webhook receives the runs of its own tasks.<//>`;
  return html`<${LoadedView} of=${agent}>
    ${(each) => html`<${About} agent=${each} done=${list.reload} />
      <${Section} title="Webhook deliveries">
        <${Filters} list=${list} fields=${fields} />
        <${List} list=${list} caption="Deliveries" columns=${columnsOf(id, list.reload)} one="delivery"
          several="deliveries" empty=${empty} />
      <//>`}
  <//>`;
}

function About({ agent, done }) {
  const { id, name, scopes, webhook_url: webhook } = agent;
  const test = {
    title: 'Send a test message?',
    text: `To ${webhook}. It has no content.`,
    action: 'Send',
    path: `agents/${id}/webhook-test`,
    done: 'The message is being sent.',
  };
  const facts = [
    ['Scopes', scopes.length === 0 ? 'none' : html`<${Tags} of=${scopes} />`],
    ['Webhook', webhook === null ? 'none' : html`<code>${webhook}</code>`],
    ['Added', html`<${InstantAndDistance} at=${agent.created_at} />`],
    ['Changed', html`<${InstantAndDistance} at=${agent.updated_at} />`],
    ['ID', html`<code>${id}</code>`],
    ['Stream', html`<${StreamLink} stream="agent-${id}">Step through its events<//>`],
  ];
  return html`<${Heading} title=${name}>
      ${webhook !== null && html`<${AskButton} text="Send a test message" dialog=${test} done=${done} />`}
      <a class="button" href="#/audit?actor=${id}">What it did</a>
    <//>
    <${Section} title="Facts"><${Facts} of=${facts} /><//>`;
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
    '',
    ({ id, state, type }) => {
      const dialog = { ...repeatDialog, path: `agents/${agent}/webhooks/deliveries/${id}/repeat` };
      return (
        state !== 'pending' &&
        html`<${AskButton} text="Send again" kind="small" label="Send again: ${type}" dialog=${dialog}
          done=${done} />`
      );
    },
  ],
];

const repeatDialog = {
  title: 'Send it again?',
  text: 'The same message with the same ID. A receiver that has handled it should ignore it.',
  action: 'Send',
  done: 'The message is being sent again.',
};

function Responses({ attempts, payload }) {
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
