// The list of agents.

import { html, useState } from '../preact.js';
import { callFully } from '../client.js';
import { useData } from '../data.js';
import { useFilters } from '../filters.js';
import { counted } from '../times.js';
import { Button, Heading, Loaded, Table, Tags } from '../ui/elements.js';
import { Filters } from '../ui/field.js';
import { When } from '../ui/names.js';

const PAGE = 200;
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

export function AgentsView() {
  const list = useFilters(null, { name: '' });
  const [before, setBefore] = useState([]);
  const { filters, cursors } = list.asked;
  const agents = useData(
    async (signal) => {
      const shown = cursors.length > 1 ? before : [];
      const query = { name_filter: filters.name, limit: PAGE, offset: shown.length };
      const { body, headers } = await callFully('GET', 'agents', { query, signal });
      return { items: [...shown, ...body], total: Number(headers.get('x-total-count')) };
    },
    [list.asked],
  );
  const more = (items) => {
    setBefore(items);
    list.turnTo([...cursors, items.length]);
  };
  return html`<${Heading} title="Agents" />
    <${Filters} list=${list} fields=${[{ name: 'name', label: 'Name', type: 'search' }]} />
    <div class="results" aria-live="polite">
      <${Loaded} of=${agents}>
        ${({ items, total }) => html`<${Table} caption="Agents" columns=${columns} items=${items}
            empty="No agent has such a name." />
          <p class="soft">${counted(total, 'agent')}</p>
          ${
            total > items.length &&
            html`<${Button} kind="small" onClick=${() => more(items)}>More<//>`
          }`}
      <//>
    </div>`;
}
