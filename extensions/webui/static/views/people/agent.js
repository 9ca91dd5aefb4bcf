// One agent: what it may do, its keys, its webhook, and the deliveries to it.

import { html, useState } from '../../preact.js';
import { agentId, call, may } from '../../client.js';
import { useData } from '../../data.js';
import { learnAgent } from '../../names.js';
import { State, Tags, spaced } from '../../ui/elements.js';
import { Facts, Heading, LoadedView, Section } from '../../ui/layout.js';
import { Actor, InstantAndDistance, StreamLink } from '../../ui/names.js';
import { ShownOnce } from '../../ui/shown-once.js';
import { AgentActions } from './agent-actions.js';
import { ApiKeys } from './api-keys.js';
import { Deliveries } from './deliveries.js';

/** The interval of reads, in milliseconds. */
const BEAT = 10_000;
const DEFAULT = 'default';

export function AgentView({ id, query }) {
  const agent = useData(
    (signal, after) => call('GET', `agents/${id}`, { query: { after }, signal }),
    [],
    {
      every: BEAT,
    },
  );
  const [secret, show] = useState(null);
  const isAdministered = may('admin') || may('namespace:admin');
  return html`<${LoadedView} of=${agent}>
    ${(each) => {
      learnAgent(id, each.name);
      return html`<${Heading} title=${each.name} beside=${each.disabled && html`<${State} of="disabled" tone="wait" />`}>
          ${isAdministered && html`<${AgentActions} agent=${each} done=${agent.reload} show=${show} />`}
          ${may('audit:read') && html`<a class="button" href="#/audit?actor=${id}">What it did</a>`}
        <//>
        ${secret !== null && html`<${ShownOnce} ...${secret} done=${() => show(null)} />`}
        <${Section} title="Facts"><${About} agent=${each} isAdministered=${isAdministered} /><//>
        <${ApiKeys} agent=${each} />
        ${isAdministered && html`<${Deliveries} agent=${each} query=${query} />`}`;
    }}
  <//>`;
}

function About({ agent, isAdministered }) {
  const { id, namespace = DEFAULT, scopes, webhook_url: webhook, disabled } = agent;
  const facts = [
    disabled && ['Disabled', html`<${Disabled} ...${disabled} />`],
    ['Scopes', scopes.length === 0 ? 'none' : html`<${Tags} of=${scopes} />`],
    (namespace !== DEFAULT || isAdministered) && [
      'Namespace',
      html`<a href="#/namespaces/${namespace}">${namespace}</a>`,
    ],
    ['Webhook', webhook === null ? 'none' : html`<code>${webhook}</code>`],
    ['Added', html`<${InstantAndDistance} at=${agent.created_at} />`],
    ['Changed', html`<${InstantAndDistance} at=${agent.updated_at} />`],
    [
      'ID',
      html`<code>${id}</code>${id === agentId() && html` <span class="soft">your agent</span>`}`,
    ],
    may('audit:read') && [
      'Stream',
      html`<${StreamLink} stream="agent-${id}">Step through its events<//>`,
    ],
  ];
  return html`<${Facts} of=${facts} />`;
}

/** Who disabled it, when, and what happens to its runs. */
const Disabled = ({ by, since, runs }) =>
  html`by <${Actor} id=${by} />, <${InstantAndDistance} at=${since} />. Its runs ${
    runs === 'cancel' ? 'are canceled' : `may ${spaced(runs)}`
  }.`;
