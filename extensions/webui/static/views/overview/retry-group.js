// Retries the failed runs of one error, after showing their number.

import { html } from '../../preact.js';
import { command } from '../../client.js';
import { notify } from '../../store.js';
import { counted, dateText } from '../../times.js';
import { AskButton } from '../../ui/dialog.js';
import { TaskLink } from '../../ui/names.js';
import { outcomeText } from '../runs/runs-bulk.js';

const starts = { failed_step: 'the step that failed', start: 'the start' };
const fields = [{ name: 'from', label: 'From', value: 'failed_step', options: starts }];

/**
 * @param start only runs that started later, ISO 8601
 * @param task the only task whose runs are retried; `''` for all tasks
 * @param done called when runs were retried
 */
export function RetryGroup({ group: { id, error }, start, task = '', done }) {
  const ofTask = task === '' ? {} : { task_id: task };
  const send = async ({ reason, from }, more) => {
    const body = { error_group: id, start_time: start, from, ...ofTask, ...more };
    const { details } = await command('runs/redrive', { reason: more.dry_run ? '' : reason, body });
    return details;
  };
  const dialog = {
    title: 'Retry the failed runs of this error',
    text: html`<code>${error}</code><br />Only runs ${task !== '' && html`of <${TaskLink} id=${task} />`} that started after ${dateText(start)}. Those that were retried
      successfully are left out.`,
    action: 'Retry runs',
    fields,
    preview: async (values) => {
      const details = await send(values, { dry_run: true });
      const shown = html`<p class="outcome">${outcomeText(details, 'would be retried')}</p>`;
      const action = details.count === 0 ? null : `Retry ${counted(details.count, 'run')}`;
      return { shown, action, count: details.count };
    },
    // The limit is the number shown, because more runs may have failed since.
    act: async (values, { count: limit }) => {
      const details = await send(values, { limit });
      notify(outcomeText(details, details.count === 1 ? 'run is retried' : 'runs are retried'));
    },
  };
  return html`<${AskButton} text="Retry …" kind="small" label="Retry ${error}" dialog=${dialog} done=${done} />`;
}
