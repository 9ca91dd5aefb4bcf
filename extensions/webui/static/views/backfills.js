// The backfills of a task and their progress, and how to cancel one.

import { html, useEffect } from '../preact.js';
import { call, command, mayChange } from '../client.js';
import { useData } from '../data.js';
import { count } from '../times.js';
import { ask, reasonField } from '../ui/dialog.js';
import { Button, Loaded, Section, State, Table, num } from '../ui/elements.js';
import { Instant } from '../ui/names.js';

const BEAT = 2000;
const figures = ['Fires', 'Already run', 'Succeeded', 'Failed', 'Unfinished'];
const columns = ['Span', 'State', 'Progress', ...figures.map(num), ''];

/** Shown if there are any; live while one is unfinished. */
export function Backfills({ task, version }) {
  const backfills = useData(
    async (signal) =>
      (await call('GET', `tasks/${task.id}/backfills`, { query: { limit: 10 }, signal })).items,
    [version],
    { pace: BEAT },
  );
  const { data } = backfills;
  useEffect(() => {
    if (data?.some(({ state, unfinished }) => state === 'running' || unfinished > 0)) {
      backfills.refresh();
    }
  }, [data]);
  const rows = (items) => items.map((each) => row(each, task, backfills.reload));
  return html`<${Loaded} of=${backfills}>
    ${(items) =>
      items.length > 0 &&
      html`<${Section} title="Backfills">
        <${Table} caption="Backfills" columns=${columns} rows=${rows(items)} />
      <//>`}
  <//>`;
}

function row(backfill, task, done) {
  const { id, from, to, state, requested, existing, total, succeeded, failed, unfinished } =
    backfill;
  const isCancelable = mayChange(task) && state === 'running';
  return {
    key: id,
    cells: [
      html`<${Instant} at=${from} /> to <${Instant} at=${to} />`,
      html`<${State} of=${state} />`,
      html`<progress value=${requested + existing} max=${total} aria-label="requested"></progress>`,
      ...[total, existing, succeeded, failed, unfinished].map(count),
      isCancelable && html`<${CancelButton} backfill=${backfill} done=${done} />`,
    ],
  };
}

function CancelButton({ backfill: { id, requested, total }, done }) {
  const cancel = async () => {
    const isDone = await ask({
      title: 'Cancel this backfill?',
      text: `${requested} of ${total} runs were requested. Its queued runs are canceled; running ones are asked to stop.`,
      action: 'Cancel the backfill',
      dismiss: 'Back',
      kind: 'danger',
      fields: [reasonField],
      act: ({ reason }) => command(`backfills/${id}/cancel`, { reason }),
      done: 'The backfill was canceled.',
    });
    if (isDone) await done();
  };
  return html`<${Button} kind="danger small" onClick=${cancel}>Cancel<//>`;
}
