// The list of agents.

import { html } from '../../preact.js';
import { callFully } from '../../client.js';
import { Tags } from '../../ui/elements.js';
import { Heading } from '../../ui/layout.js';
import { Filters, List, useList } from '../../ui/list.js';
import { When } from '../../ui/names.js';

const PAGE = 200;
const fields = [{ name: 'name', label: 'Name', type: 'search' }];
const columns = [
  ['Name', ({ id, name }) => html`<a class="name" href="#/agents/${id}">${name}</a>`],
  ['Scopes', ({ scopes }) => html`<${Tags} of=${scopes} />`, 'grow'],
  [
    'Webhook',
    ({ webhook_url: url }) =>
      url === null ? html`<span class="soft">none</span>` : html`<code>${url}</code>`,
    'minor',
  ],
  ['Added', ({ created_at: at }) => html`<${When} at=${at} />`],
];

/** Agents are read by offset, which serves as the cursor. */
async function readAgents({ name, cursor: offset = 0 }, signal) {
  const query = { name_filter: name, limit: PAGE, offset };
  const { body: items, headers } = await callFully('GET', 'agents', { query, signal });
  const total = Number(headers.get('x-total-count'));
  const end = offset + items.length;
  return { items, total, next_cursor: end < total ? end : null };
}

export function AgentsView() {
  const list = useList(null, { name: '' }, readAgents);
  return html`<${Heading} title="Agents" />
    <${Filters} list=${list} fields=${fields} />
    <${List} list=${list} caption="Agents" columns=${columns} one="agent" empty="No agent has such a name." />`;
}
