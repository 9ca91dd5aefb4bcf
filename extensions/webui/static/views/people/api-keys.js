// The API keys of an agent: their scopes, expiry and last use.

import { html } from '../../preact.js';
import { agentId, call, command, may } from '../../client.js';
import { AskButton } from '../../ui/dialog.js';
import { Nothing, Table, Tags } from '../../ui/elements.js';
import { Expiry } from '../../ui/expiry.js';
import { Loaded, Section } from '../../ui/layout.js';
import { Actor, When } from '../../ui/names.js';
import { Updates, useUpdates } from '../../ui/updates.js';

/** The interval of reads, in milliseconds. */
const BEAT = 10_000;

export function ApiKeys({ agent }) {
  const { id } = agent;
  // An auditor may see an agent, but not its keys.
  const isShown = id === agentId() || may('admin') || may('namespace:admin');
  if (!isShown) return null;
  return html`<${Keys} agent=${agent} />`;
}

function Keys({ agent: { id, name } }) {
  const keys = useUpdates(
    (signal, after) => call('GET', `agents/${id}/keys`, { query: { after }, signal }),
    [],
    { every: BEAT },
  );
  const aside = html`<${Updates} of=${keys} what="API keys" />
    <a class="button" href="#/agents/${id}/keys/new">New API key</a>`;
  const empty = html`<${Nothing} text="No API keys.">A key works without logging in, until it expires or is revoked.<//>`;
  return html`<${Section} title="API keys" aside=${aside}>
    <${Loaded} of=${keys}>
      ${({
        items,
      }) => html`<${Table} caption="API keys" columns=${columnsOf(id, name, keys.reload)} items=${items}
        empty=${empty} />`}
    <//>
  <//>`;
}

const columnsOf = (agent, agentName, done) => [
  ['Name', ({ name }) => html`<span class="name">${name}</span>`],
  ['Scopes', ({ scopes }) => html`<${Tags} of=${scopes} />`, 'grow'],
  ['Expires', ({ expires_at: at }) => html`<${Expiry} at=${at} />`],
  [
    'Last use',
    ({ last_used_at: at }) =>
      at === null ? html`<span class="soft">never</span>` : html`<${When} at=${at} />`,
  ],
  [
    'Created',
    ({ created_at: at, created_by: by, created_by_name: name }) =>
      html`<${When} at=${at} /> <span class="soft">by <${Actor} id=${by} name=${name} /></span>`,
    'minor',
  ],
  [
    'Actions',
    ({ id, name }) => {
      const dialog = {
        title: `Revoke the key ${name}?`,
        text: `Programs that use it can no longer act as ${agentName}. It cannot be restored.`,
        act: ({ reason }) => command(`agents/${agent}/keys/${id}`, { method: 'DELETE', reason }),
        done: `The key ${name} is revoked.`,
      };
      return html`<${AskButton} text="Revoke" kind="danger small" label="Revoke ${name}" dialog=${dialog}
        done=${done} />`;
    },
    'num',
  ],
];
