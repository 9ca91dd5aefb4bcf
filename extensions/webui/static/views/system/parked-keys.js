// The keys that a projection holds back because an event could not be applied: retried or skipped one by one.

import { html } from '../../preact.js';
import { call, command } from '../../client.js';
import { AskButton } from '../../ui/dialog.js';
import { Button } from '../../ui/elements.js';
import { Section } from '../../ui/layout.js';
import { List, useList } from '../../ui/list.js';
import { StreamLink } from '../../ui/names.js';

const PAGE = 25;

/** @param changed called after each command */
export function ParkedKeys({ name, changed, close }) {
  const base = `projections/${encodeURIComponent(name)}/parked`;
  const read = (query, signal) => call('GET', base, { query: { ...query, limit: PAGE }, signal });
  const list = useList(null, {}, read);
  const done = () => Promise.all([list.reload(), changed()]);
  const button = (key, text, kind, consequence) => {
    const act = async ({ reason }) => {
      const path = `${base}/${encodeURIComponent(key)}/${text.toLowerCase()}`;
      const { details } = await command(path, { reason });
      if (details.error !== null) throw new Error(`Still parked: ${details.error}`);
    };
    const message = `${name}: the key is no longer parked`;
    const dialog = { title: `${text} ${key}?`, text: consequence, act, done: message };
    return html`<${AskButton} text=${text} kind=${kind} dialog=${dialog} done=${done} />`;
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
      'Actions',
      ({ key }) => html`<div class="row">
        ${button(key, 'Retry', 'small', 'Applies the event again, and all later ones of this key.')}
        ${button(key, 'Skip', 'danger small', 'Leaves the event out. A later rebuild meets it again.')}
      </div>`,
    ],
  ];
  const aside = html`<${Button} kind="small" onClick=${close}>Close<//>`;
  return html`<${Section} title="Parked keys of ${name}" aside=${aside}>
    <${List} list=${list} caption="Keys" columns=${columns} rowKey="key" one="key"
      empty="No keys are parked now." />
  <//>`;
}
