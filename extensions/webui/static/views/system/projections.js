// The projections of the log: how far each is, its rebuild, and the keys that it holds back.

import { html } from '../../preact.js';
import { setAddress } from '../../address.js';
import { call } from '../../client.js';
import { count, duration } from '../../times.js';
import { AskButton } from '../../ui/dialog.js';
import { Button, State, Table } from '../../ui/elements.js';
import { Heading, Loaded } from '../../ui/layout.js';
import { When } from '../../ui/names.js';
import { Updates, useUpdates } from '../../ui/updates.js';
import { ParkedKeys } from './parked-keys.js';
import { RebuildProgress, comparisonText } from './rebuild-progress.js';
import { SystemTabs } from './system-tabs.js';

const BEAT = 1500;

/** Opens or closes the parked keys of a projection. The address names the open one. */
const open = (name) =>
  setAddress('system/read-models', name === null ? '' : new URLSearchParams({ parked: name }), {});

export function ProjectionsView({ query }) {
  const opened = query.get('parked');
  const read = async (signal) => (await call('GET', 'projections', { signal })).projections;
  const projections = useUpdates(read, [], { every: BEAT });
  const columns = columnsOf(projections.reload);
  return html`<${Heading} title="Read models">
      <span class="soft">views that projections build from the log to serve reads</span>
    <//>
    <${SystemTabs} current="system/read-models" />
    <div class="results">
      <${Loaded} of=${projections}>
        ${(all) => html`<${Table} caption="Projections" columns=${columns} items=${all}
          rowKey="name" />`}
      <//>
      <div class="row middle pages"><${Updates} of=${projections} /></div>
    </div>
    ${
      opened !== null &&
      html`<${ParkedKeys} key=${opened} name=${opened} changed=${projections.reload}
      close=${() => open(null)} />`
    }`;
}

const columnsOf = (done) => [
  ['Projection', ({ name }) => html`<strong>${name}</strong>`],
  [
    'State',
    ({ state, detail }) =>
      html`<${State} of=${state} />${detail && html`<p class="hint">${detail}</p>`}`,
  ],
  ['Version', 'version', 'num'],
  ['Schema', 'schema', 'num'],
  ['Position', ({ position }) => html`<code>${count(Number(position) || 0)}</code>`, 'num'],
  ['Lag', ({ lag_seconds: lag }) => duration(lag * 1000), 'num'],
  [
    'Parked',
    ({ name, parked }) =>
      parked === 0
        ? 0
        : html`<${Button} kind="danger small" onClick=${() => open(name)}
        label="${parked} parked keys of ${name}: show">${count(parked)}<//>`,
    'num',
  ],
  ['Rebuild', (projection) => html`<${Rebuild} ...${projection} done=${done} />`, 'grow'],
];

function Rebuild({ name, version, rebuild, previous, done }) {
  const button = (verb, { name: text, kind = '', ...dialog }) => {
    const path = `projections/${encodeURIComponent(name)}/${verb}`;
    const message = `${name}: ${text.toLowerCase()} requested`;
    return html`<${AskButton} key=${verb} text=${text} kind="${kind} small" label="${text} ${name}"
      dialog=${{ path, done: message, ...dialog }} done=${done} />`;
  };
  if (rebuild !== null) {
    return html`<${RebuildProgress} name=${name} rebuild=${rebuild} />
      <div class="row">${rebuildCommands(name, rebuild, version).map((each) => button(...each))}</div>`;
  }
  const rollback = previous && {
    name: 'Roll back',
    title: `Roll ${name} back to version ${previous.version}?`,
    text: `That version has kept up with the log. Version ${version} is kept in the same way.`,
    // Somebody else may have rolled it back in the meantime.
    bodyOf: () => ({ expected_version: version }),
  };
  const until = previous && html`<${When} at=${previous.until} />`;
  return html`<div class="row">
    ${button('rebuild', rebuildOptions(name))} ${previous && button('rollback', rollback)}
    ${previous && html`<span class="hint">version ${previous.version} is kept, ends ${until}</span>`}
  </div>`;
}

const modes = { manual: 'wait until I have seen the differences', auto: 'switch reads to it' };
const rateHint = 'Leave empty for no limit.';
const rebuildFields = [
  { name: 'switch', label: 'When it has caught up with the log', value: 'manual', options: modes },
  { name: 'rate', label: 'Events per second at most', type: 'number', min: 1, hint: rateHint },
];
const rebuildOptions = (name) => ({
  name: 'Rebuild',
  title: `Rebuild ${name}?`,
  text: 'From the whole log, beside the version that serves reads. Reads never stop, and nothing fires or is sent.',
  fields: rebuildFields,
  bodyOf: ({ rate, ...values }) => (rate === '' ? values : { ...values, rate: Number(rate) }),
});

/** The commands of a rebuild, as `[verb, options]`. @param live the version that serves reads */
function rebuildCommands(name, { state, version, comparison }, live) {
  const differences =
    comparison === null ? 'There is nothing to compare it with.' : comparisonText(comparison);
  const commands = {
    pause: { name: 'Pause', title: `Pause the rebuild of ${name}?` },
    resume: { name: 'Resume', title: `Resume the rebuild of ${name}?` },
    switch: {
      name: 'Switch',
      title: `Switch reads of ${name} to version ${version}?`,
      text: differences,
      bodyOf: () => ({ expected_version: live }),
      kind: 'main-action',
    },
    cancel: {
      name: state === 'failed' ? 'Discard' : 'Cancel',
      title: `Discard the rebuild of ${name}?`,
      action: state === 'failed' ? 'Discard it' : 'Cancel the rebuild',
      kind: 'danger',
    },
  };
  const first = { paused: 'resume', ready: 'switch', failed: null }[state];
  const verbs = first === null ? ['cancel'] : [first ?? 'pause', 'cancel'];
  return verbs.map((verb) => [verb, commands[verb]]);
}
