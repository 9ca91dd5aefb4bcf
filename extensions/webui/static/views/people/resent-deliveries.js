// Webhook messages to all agents that were sent more than once.

import { html } from '../../preact.js';
import { call } from '../../client.js';
import { Nothing, State } from '../../ui/elements.js';
import { Heading } from '../../ui/layout.js';
import { List, useList } from '../../ui/list.js';
import { AgentLink, RunLink, When } from '../../ui/names.js';
import { AgentTabs } from './agent-tabs.js';
import { Responses } from './deliveries.js';

const PAGE = 25;

const readResent = (query, signal) =>
  call('GET', 'webhooks/resent', { query: { ...query, limit: PAGE }, signal });

export function ResentDeliveriesView() {
  const list = useList('agents/resent', {}, readResent);
  return html`<${Heading} title="Webhook messages sent twice" />
    <${AgentTabs} current="agents/resent" />
    <${List} list=${list} caption="Messages" columns=${columns} one="message"
      empty=${html`<${Nothing} text="None.">A message is sent again on request, after it was delivered or has failed.<//>`} />`;
}

const columns = [
  ['Sent again', ({ resent_at: at }) => html`<${When} at=${at} />`],
  ['Agent', ({ agent_id: id }) => html`<${AgentLink} id=${id} />`],
  [
    'Event',
    ({ type, run_id: run }) => html`${type} ${run !== null && html`<${RunLink} id=${run} />`}`,
  ],
  ['State', ({ state }) => html`<${State} of=${state} />`],
  ['Attempts', ({ attempts }) => attempts.length, 'num'],
  ['Last response', (delivery) => html`<${Responses} ...${delivery} />`, 'grow'],
];
