// The list of agents. An agent that may not see others sees itself.

import { html } from '../../preact.js';
import { agentId, callFully, may } from '../../client.js';
import { useStore } from '../../store.js';
import { State, Tags } from '../../ui/elements.js';
import { Heading } from '../../ui/layout.js';
import { Filters, List, filtersIn, useList } from '../../ui/list.js';
import { When } from '../../ui/names.js';
import { AgentTabs } from './agent-tabs.js';
import { AgentView } from './agent.js';

const PAGE = 100;
const fields = [
  { name: 'name', label: 'Name', type: 'search' },
  { name: 'scope', label: 'Scope', type: 'search' },
];

/** Whether the agent may register and change agents. */
export const mayAdminister = () => may('admin') || may('namespace:admin');

/** Agents are read by offset, which serves as the cursor. */
async function readAgents({ name, scope, cursor = 0 }, signal) {
  const offset = Number(cursor);
  const query = { name_filter: name, scope_filter: scope, limit: PAGE, offset };
  const { body: items, headers } = await callFully('GET', 'agents', { query, signal });
  const total = Number(headers.get('x-total-count'));
  const end = offset + items.length;
  return { items, total, next_cursor: end < total ? end : null };
}

export const AgentsView = ({ query }) =>
  mayAdminister() || may('audit:read')
    ? html`<${AllAgents} query=${query} />`
    : html`<${AgentView} id=${agentId()} query=${query} />`;

function AllAgents({ query }) {
  const list = useList('agents', filtersIn(query, fields), readAgents);
  const hasSeveral = useStore(({ namespaces }) => namespaces.length > 1);
  return html`<${Heading} title="Agents">
      ${mayAdminister() && html`<a class="button main-action" href="#/agents/new">New agent</a>`}
      <a class="button" href="#/agents/${agentId()}">Your agent</a>
    <//>
    <${AgentTabs} current="agents" />
    <${Filters} list=${list} fields=${fields} />
    <${List} list=${list} caption="Agents" columns=${columnsOf(hasSeveral)} one="agent"
      empty="No agent matches." />`;
}

const columnsOf = (hasSeveral) => [
  [
    'Name',
    ({ id, name, disabled }) => html`<a class="name" href="#/agents/${id}">${name}</a>
      ${disabled !== null && html` <${State} of="disabled" tone="wait" />`}`,
  ],
  hasSeveral && [
    'Namespace',
    ({ namespace = 'default' }) => html`<a href="#/namespaces/${namespace}">${namespace}</a>`,
  ],
  ['Scopes', ({ scopes }) => html`<${Tags} of=${scopes} />`, 'grow'],
  [
    'Webhook',
    ({ webhook_url: url }) =>
      url === null ? html`<span class="soft">none</span>` : html`<code>${url}</code>`,
    'minor',
  ],
  ['Added', ({ created_at: at }) => html`<${When} at=${at} />`, 'minor'],
];
