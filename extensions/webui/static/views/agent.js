// One agent: its scopes, its webhook, and the deliveries to it.

import { html } from '../preact.js';
import { call, command } from '../client.js';
import { useData } from '../data.js';
import { useFilters } from '../filters.js';
import { duration } from '../times.js';
import { ask, reasonField } from '../ui/dialog.js';
import { Button, Facts, Heading, Json, Lines, Loaded, LoadedView } from '../ui/elements.js';
import { Nothing, Pages, Section, State, Table, Tags, spaced } from '../ui/elements.js';
import { Filters } from '../ui/field.js';
import { Instant, InstantAndDistance, RunLink, StreamLink, When } from '../ui/names.js';

const PAGE = 25;
const fields = [{ name: 'state', label: 'State', options: ['', 'pending', 'delivered', 'failed'] }];
export function AgentView({ id }) {
  const agent = useData((signal) => call('GET', `agents/${id}`, { signal }), []);
  const list = useFilters(null, { state: '' });
  const deliveries = useData(
    (signal) => {
      const query = { ...list.asked.filters, limit: PAGE, cursor: list.asked.cursors.at(-1) };
      return call('GET', `agents/${id}/webhooks/deliveries`, { query, signal });
    },
    [list.asked],
  );
  const columns = columnsOf(id, deliveries.reload);
  const empty = html`<${Nothing} text="Nothing was sent.">Its webhook receives the runs of its own tasks.<//>`;
  return html`<${LoadedView} of=${agent}>
    ${(each) => html`<${About} agent=${each} done=${deliveries.reload} />
      <${Section} title="Webhook deliveries">
        <${Filters} list=${list} fields=${fields} />
        <${Loaded} of=${deliveries}>
          ${(page) => html`<${Table} caption="Deliveries" columns=${columns} items=${page.items}
              empty=${empty} />
            <${Pages} page=${page} list=${list} one="delivery" several="deliveries" />`}
        <//>
      <//>`}
  <//>`;
}

function About({ agent, done }) {
  const { id, name, scopes, webhook_url: webhook } = agent;
  const test = async () => {
    const isDone = await ask({
      title: 'Send a test message?',
      text: `To ${webhook}. It has no content.`,
      action: 'Send',
      fields: [reasonField],
      act: ({ reason }) => command(`agents/${id}/webhook-test`, { reason }),
      done: 'The message is being sent.',
    });
    if (isDone) await done();
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
      ${webhook !== null && html`<${Button} onClick=${test}>Send a test message<//>`}
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
    ({ id, state, type }) =>
      state !== 'pending' &&
      html`<${Button} kind="small" onClick=${() => sendAgain(agent, id, done)}
        label="Send again: ${type}">Send again<//>`,
  ],
];

async function sendAgain(agent, id, done) {
  const isDone = await ask({
    title: 'Send it again?',
    text: 'The same message with the same ID. A receiver that has handled it should ignore it.',
    action: 'Send',
    fields: [reasonField],
    act: ({ reason }) => command(`agents/${agent}/webhooks/deliveries/${id}/repeat`, { reason }),
    done: 'The message is being sent again.',
  });
  if (isDone) await done();
}

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
