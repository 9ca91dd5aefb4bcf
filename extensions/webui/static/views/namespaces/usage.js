// A namespace's use of its quotas.

import { html } from '../../preact.js';
import { call } from '../../client.js';
import { count } from '../../times.js';
import { State, Table, spaced } from '../../ui/elements.js';
import { Loaded, Section, Tile } from '../../ui/layout.js';
import { When } from '../../ui/names.js';
import { Updates, useUpdates } from '../../ui/updates.js';

/** The interval of reads, in milliseconds. */
const BEAT = 5000;
/** From this share of a limit on, a quota counts as nearly used up. */
const NEAR = 0.8;

export function Usage({ name }) {
  const usage = useUpdates(
    (signal) => call('GET', `namespaces/${encodeURIComponent(name)}/usage`, { signal }),
    [],
    { every: BEAT },
  );
  const aside = html`<${Updates} of=${usage} />`;
  return html`<${Loaded} of=${usage}>
    ${({ weight, unfinished_runs: runs, quotas }) => html`<div class="tiles">
        <${Tile} name="Unfinished runs" value=${runs === null ? null : count(runs)} />
        <${Tile} name="Weight" value=${count(weight)} more="its share of the slots" />
      </div>
      <${Section} title="Quotas" aside=${aside}>
        <${Table} caption="Quotas" columns=${columns} items=${quotas} rowKey="quota" />
      <//>`}
  <//>`;
}

const columns = [
  ['Quota', ({ quota }) => spaced(quota)],
  ['Used', ({ used }) => count(used), 'num'],
  [
    'Limit',
    ({ limit }) => (limit === null ? html`<span class="soft">none</span>` : count(limit)),
    'num',
  ],
  ['Share', (quota) => html`<${Meter} ...${quota} />`, 'grow'],
  ['State', (quota) => html`<${Condition} ...${quota} />`],
];

const toneOf = (share) => (share >= 1 ? 'bad' : share >= NEAR ? 'wait' : 'idle');

function Meter({ quota, used, limit }) {
  if (limit === null) return null;
  const share = limit === 0 ? 1 : Math.min(1, used / limit);
  return html`<span class="meter ${toneOf(share)}" role="meter" aria-label=${spaced(quota)} aria-valuemin="0"
    aria-valuemax=${limit} aria-valuenow=${Math.min(used, limit)}><span style=${{ width: `${share * 100}%` }}></span></span>`;
}

function Condition({ used, limit, frees_at: at }) {
  if (limit === null || used < limit * NEAR) return html`<span class="soft">free</span>`;
  if (used < limit) return html`<${State} of="nearly used up" tone="wait" />`;
  return html`<${State} of="used up" tone="bad" />
    ${at !== null && html`<span class="hint"> frees <${When} at=${at} /></span>`}`;
}
