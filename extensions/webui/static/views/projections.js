// The projections of the log: how far each is, its rebuild, and the keys that it holds back.

import { html, useState } from '../preact.js';
import { call, command } from '../client.js';
import { useData } from '../data.js';
import { count, duration } from '../times.js';
import { ask, reasonField } from '../ui/dialog.js';
import { Button, Heading, Loaded, State, Table } from '../ui/elements.js';
import { When } from '../ui/names.js';
import { ParkedKeys } from './parked.js';
import { RebuildProgress, comparisonText } from './rebuild-progress.js';

const BEAT = 1500;

export function ProjectionsView() {
  const [opened, open] = useState(null);
  const read = async (signal) => (await call('GET', 'projections', { signal })).projections;
  const projections = useData(read, [], { every: BEAT });
  const columns = columnsOf(projections.reload, open);
  return html`<${Heading} title="Projections">
      <span class="soft">views that are built from the log and serve reads</span>
    <//>
    <div class="results">
      <${Loaded} of=${projections}>
        ${(all) => html`<${Table} caption="Projections" columns=${columns} items=${all}
          keyOf=${({ name }) => name} />`}
      <//>
    </div>
    ${
      opened !== null &&
      html`<${ParkedKeys} key=${opened} name=${opened} changed=${projections.reload}
      close=${() => open(null)} />`
    }`;
}

const columnsOf = (done, open) => [
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
  const button = (verb, options) =>
    html`<${CommandButton} key=${verb} name=${name} verb=${verb} done=${done} ...${options} />`;
  if (rebuild !== null) {
    return html`<${RebuildProgress} name=${name} rebuild=${rebuild} />
      <div class="row">${rebuildCommands(name, rebuild, version).map((each) => button(...each))}</div>`;
  }
  const rollback = previous && {
    text: 'Roll back',
    title: `Roll ${name} back to version ${previous.version}?`,
    hint: `That version has kept up with the log. Version ${version} is kept in the same way.`,
    // Somebody else may have rolled it back meanwhile.
    bodyOf: () => ({ expected_version: version }),
  };
  return html`<div class="row">
    ${button('rebuild', rebuildOptions(name))}
    ${
      previous &&
      html`${button('rollback', rollback)}
      <span class="hint">version ${previous.version} is kept, ends <${When} at=${previous.until} /></span>`
    }
  </div>`;
}

const rebuildOptions = (name) => ({
  text: 'Rebuild',
  title: `Rebuild ${name}?`,
  hint: 'From the whole log, beside the version that serves reads. Reads never stop, and nothing fires or is sent.',
  fields: [
    {
      ...{ name: 'switch', label: 'When it has caught up with the log', value: 'manual' },
      options: [
        ['manual', 'wait until I have seen the differences'],
        ['auto', 'switch reads to it'],
      ],
    },
    {
      ...{ name: 'rate', label: 'Events per second at most', type: 'number', min: 1 },
      hint: 'Leave empty for no limit.',
    },
  ],
  bodyOf: ({ rate, switch: mode }) => ({
    switch: mode,
    ...(rate === '' ? {} : { rate: Number(rate) }),
  }),
});

/** What can be done with a rebuild, as `[verb, options]`. @param live the version that serves reads */
function rebuildCommands(name, { state, version, comparison }, live) {
  const isRunning = state !== 'ready' && state !== 'failed';
  const text =
    comparison === null ? 'There is nothing to compare it with.' : comparisonText(comparison);
  const pause = ['pause', { text: 'Pause', title: `Pause the rebuild of ${name}?` }];
  const resume = ['resume', { text: 'Resume', title: `Resume the rebuild of ${name}?` }];
  const title = `Switch reads of ${name} to version ${version}?`;
  const bodyOf = () => ({ expected_version: live });
  const discard = {
    text: state === 'failed' ? 'Discard' : 'Cancel',
    title: `Discard the rebuild of ${name}?`,
    action: state === 'failed' ? 'Discard it' : 'Cancel the rebuild',
    dismiss: 'Back',
    kind: 'danger',
  };
  return [
    isRunning && (state === 'paused' ? resume : pause),
    state === 'ready' && [
      'switch',
      { text: 'Switch', title, hint: text, bodyOf, kind: 'main-action' },
    ],
    ['cancel', discard],
  ].filter(Boolean);
}

/** A command that asks first. @param {(values: object) => object} bodyOf of the values of its fields; default: none */
function CommandButton({
  name,
  verb,
  text,
  title,
  hint,
  fields = [],
  bodyOf,
  kind,
  done,
  ...options
}) {
  const act = async () => {
    await ask({
      ...{ action: text, ...options, title, text: hint, fields: [...fields, reasonField] },
      kind: kind === 'danger' ? kind : 'main-action',
      act: ({ reason, ...values }) =>
        command(`projections/${encodeURIComponent(name)}/${verb}`, {
          reason,
          body: bodyOf?.(values),
        }),
      done: `${name}: ${text.toLowerCase()} requested`,
    });
    await done();
  };
  return html`<${Button} kind="${kind ?? ''} small" label="${text} ${name}" onClick=${act}>${text}<//>`;
}
