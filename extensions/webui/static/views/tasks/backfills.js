// The backfills of a task and their progress, and how to cancel one.

import { html } from '../../preact.js';
import { call, mayChange } from '../../client.js';
import { count } from '../../times.js';
import { AskButton } from '../../ui/dialog.js';
import { State, Table } from '../../ui/elements.js';
import { Loaded, Section } from '../../ui/layout.js';
import { Instant } from '../../ui/names.js';
import { Updates, useUpdates } from '../../ui/updates.js';

/** Between two reads while one is unfinished. Milliseconds. */
const BEAT = 2000;

/** Shown if there are any; live while one is unfinished. */
export function Backfills({ task, version }) {
  const backfills = useUpdates(
    async (signal) =>
      (await call('GET', `tasks/${task.id}/backfills`, { query: { limit: 10 }, signal })).items,
    [version],
    { every: (items) => (items?.some(isUnfinished) ? BEAT : undefined) },
  );
  const columns = columnsOf(task, backfills.reload);
  return html`<${Loaded} of=${backfills}>
    ${(items) =>
      items.length > 0 &&
      html`<${Section} title="Backfills" aside=${html`<${Updates} of=${backfills} what="Backfills" />`}>
        <${Table} caption="Backfills" columns=${columns} items=${items} />
      <//>`}
  <//>`;
}

const isUnfinished = ({ state, unfinished }) => state === 'running' || unfinished > 0;

const columnsOf = (task, done) => [
  ['Span', ({ from, to }) => html`<${Instant} at=${from} /> to <${Instant} at=${to} />`],
  ['State', ({ state }) => html`<${State} of=${state} />`],
  [
    'Progress',
    ({ requested, existing, total }) =>
      html`<progress value=${requested + existing} max=${total} aria-label="requested"></progress>`,
  ],
  ['Fires', ({ total }) => count(total), 'num'],
  ['Already run', ({ existing }) => count(existing), 'num'],
  ['Succeeded', ({ succeeded }) => count(succeeded), 'num'],
  ['Failed', ({ failed }) => count(failed), 'num'],
  ['Unfinished', ({ unfinished }) => count(unfinished), 'num'],
  [
    'Actions',
    (each) =>
      mayChange(task) &&
      each.state === 'running' &&
      html`<${CancelButton} backfill=${each} done=${done} />`,
  ],
];

function CancelButton({ backfill: { id, requested, total }, done }) {
  const dialog = {
    title: 'Cancel this backfill?',
    text: `${requested} of ${total} runs were requested. Its queued runs are canceled; running ones are asked to stop.`,
    action: 'Cancel the backfill',
    path: `backfills/${id}/cancel`,
    done: 'The backfill was canceled.',
  };
  return html`<${AskButton} text="Cancel" kind="danger small" dialog=${dialog} done=${done} />`;
}
