// The keys that a projection holds back because an event could not be applied: retried or skipped one by one.

import { html } from '../preact.js';
import { call, command } from '../client.js';
import { useData } from '../data.js';
import { useFilters } from '../filters.js';
import { ask, reasonField } from '../ui/dialog.js';
import { Button, Loaded, Pages, Section, Table } from '../ui/elements.js';
import { StreamLink } from '../ui/names.js';

const PAGE = 25;
const commands = [
  ['Retry', 'main-action', 'Applies the event again, and all later ones of this key.'],
  ['Skip', 'danger', 'Leaves the event out of this document. A later rebuild meets it again.'],
];

/** @param changed called after each command */
export function ParkedKeys({ name, changed, close }) {
  const base = `projections/${encodeURIComponent(name)}/parked`;
  const list = useFilters(null, {});
  const keys = useData(
    (signal) => {
      const query = { limit: PAGE, cursor: list.asked.cursors.at(-1) };
      return call('GET', base, { query, signal });
    },
    [list.asked],
  );
  const open =
    (key, [text, kind, consequence]) =>
    async () => {
      const isDone = await ask({
        ...{
          title: `${text} ${key}?`,
          text: consequence,
          action: text,
          kind,
          fields: [reasonField],
        },
        act: async ({ reason }) => {
          const path = `${base}/${encodeURIComponent(key)}/${text.toLowerCase()}`;
          const { details } = await command(path, { reason });
          if (details.error !== null) throw new Error(`Still parked: ${details.error}`);
        },
        done: `${name}: the key is no longer parked`,
      });
      if (isDone) await Promise.all([keys.reload(), changed()]);
    };
  const columns = [
    ['Key', ({ key }) => html`<code>${key}</code>`],
    [
      'Event',
      ({ stream, type, position }) =>
        html`<${StreamLink} stream=${stream}>${type}<//><p class="hint">position ${Number(position)}</p>`,
    ],
    ['Why', 'error', 'grow'],
    [
      '',
      ({ key }) => html`<div class="row">
        ${commands.map(
          (each) => html`<${Button} kind="${each[1] === 'danger' ? 'danger' : ''} small"
            onClick=${open(key, each)}>${each[0]}<//>`,
        )}
      </div>`,
    ],
  ];
  const aside = html`<${Button} kind="small" onClick=${close}>Close<//>`;
  return html`<${Section} title="Parked keys of ${name}" aside=${aside}>
    <${Loaded} of=${keys}>
      ${(page) => html`<${Table} caption="Keys" columns=${columns} items=${page.items}
          keyOf=${({ key }) => key} empty="No key is parked any more." />
        <${Pages} page=${page} list=${list} one="key" />`}
    <//>
  <//>`;
}
