// The state of the service: its health checks, and whether it is on hold.

import { html } from '../../preact.js';
import { call, may } from '../../client.js';
import { readHealth } from '../../health.js';
import { spaced, State, Table } from '../../ui/elements.js';
import { Facts, Heading, Loaded, Section } from '../../ui/layout.js';
import { Actor, InstantAndDistance } from '../../ui/names.js';
import { Updates, together, usePause, useUpdates } from '../../ui/updates.js';
import { HoldButton, ReleaseButton } from '../overview/banners.js';
import { SystemTabs } from './system-tabs.js';

/** The interval of reads, in milliseconds. */
const BEAT = 5000;

const readOperations = (signal) =>
  may('ops') ? call('GET', 'operations', { signal }) : Promise.resolve(null);

export function SystemView() {
  const pausing = usePause();
  const health = useUpdates(readHealth, [], { every: BEAT, pausing });
  const operations = useUpdates(readOperations, [], { every: BEAT, pausing });
  const beside = html`${health.data && html`<${State} of=${health.data.status} />`}
    <${Updates} of=${together(pausing, [health, operations])} />`;
  return html`<${Heading} title="System" beside=${beside} />
    <${SystemTabs} current="system" />
    <div class="columns">
      <${Section} title="Health">
        <${Loaded} of=${health}>${(each) => html`<${Health} ...${each} />`}<//>
      <//>
      ${
        may('ops') &&
        html`<${Section} title="Hold">
        <${Loaded} of=${operations}>
          ${(each) => html`<${Hold} ...${each} done=${operations.reload} />`}
        <//>
      <//>`
      }
    </div>`;
}

const columns = [
  ['Part', ({ name }) => html`<strong>${spaced(name)}</strong>`],
  ['State', ({ status }) => html`<${State} of=${status} />`],
  ['Details', 'message', 'grow'],
];

const Health = ({ checks, version, timestamp }) =>
  html`<${Table} caption="Health" columns=${columns} items=${checks} rowKey="name" />
    <p class="hint">Version ${version}, checked <${InstantAndDistance} at=${timestamp} /></p>`;

function Hold({ hold, released, done }) {
  if (hold !== null) {
    const facts = [
      ['Who', html`<${Actor} id=${hold.by} name=${hold.by_name} />`],
      ['Since', html`<${InstantAndDistance} at=${hold.since} />`],
      ['Why', hold.reason],
    ];
    return html`<p><${State} of="on_hold" /> No schedule fires and no run starts. Running runs continue.</p>
      <${Facts} of=${facts} />
      <p><${ReleaseButton} done=${done} /></p>`;
  }
  const facts = released && [
    ['Last release', html`<${InstantAndDistance} at=${released.at} />`],
    ['By', html`<${Actor} id=${released.by} name=${released.by_name} />`],
    ['Missed fires', released.missed ?? 'what each task’s policy says'],
  ];
  return html`<p>The service is not on hold: schedules fire and runs start.</p>
    ${facts && html`<${Facts} of=${facts} />`}
    <p><${HoldButton} kind="" done=${done} /></p>`;
}
