// The API keys of all agents; the keys that expire first are at the top.

import { html } from '../../preact.js';
import { call } from '../../client.js';
import { Nothing } from '../../ui/elements.js';
import { Expiry } from '../../ui/expiry.js';
import { Heading } from '../../ui/layout.js';
import { Filters, List, filtersIn, useList } from '../../ui/list.js';
import { AgentLink, When } from '../../ui/names.js';
import { AgentTabs } from './agent-tabs.js';

const PAGE = 50;
const DAY = 86_400_000;

/** Days from now until which keys expire; `''`: whenever they do. */
const spans = { '': 'at any time', 0: 'before now', 30: 'within 30 days' };
const fields = [{ name: 'days', label: 'Expire', options: spans }];

function readKeys({ days, ...query }, signal) {
  const until = days === '' ? '' : new Date(Date.now() + Number(days) * DAY).toISOString();
  return call('GET', 'agents/keys', { query: { ...query, until, limit: PAGE }, signal });
}

export function ExpiringKeysView({ query }) {
  const { days } = filtersIn(query, fields);
  const list = useList('agents/keys', { days: days in spans ? days : '' }, readKeys);
  return html`<${Heading} title="API keys by expiry" />
    <${AgentTabs} current="agents/keys" />
    <${Filters} list=${list} fields=${fields} />
    <${List} list=${list} caption="API keys" columns=${columns} one="key"
      empty=${html`<${Nothing} text="No such key.">Keys that never expire are on the pages of their agents.<//>`} />`;
}

const columns = [
  ['Key', ({ name }) => html`<span class="name">${name}</span>`],
  ['Agent', ({ agent_id: id }) => html`<${AgentLink} id=${id} />`, 'grow'],
  ['Expires', ({ expires_at: at }) => html`<${Expiry} at=${at} />`],
  [
    'Last use',
    ({ last_used_at: at }) =>
      at === null ? html`<span class="soft">never</span>` : html`<${When} at=${at} />`,
  ],
];
