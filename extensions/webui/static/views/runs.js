// The list of runs, with filters, and the retry of many failed runs.

import { html } from '../preact.js';
import { call, command, may } from '../client.js';
import { useData } from '../data.js';
import { filtersIn, useFilters } from '../filters.js';
import { learnTitles } from '../names.js';
import { notify } from '../store.js';
import { count, isoOf } from '../times.js';
import { ask, reasonField } from '../ui/dialog.js';
import { Button, Heading, Loaded, Pages, spaced } from '../ui/elements.js';
import { Filters } from '../ui/field.js';
import { TaskLink } from '../ui/names.js';
import { RunsTable } from './runs-table.js';

const PAGE = 30;
const states = ['queued', 'running', 'retrying', 'succeeded', 'failed', 'canceled', 'skipped'];
const fields = [
  { name: 'state', label: 'State', options: ['', ...states] },
  { name: 'trigger', label: 'Trigger', options: ['', 'schedule', 'manual', 'event', 'backfill'] },
  { name: 'since', label: 'Started after', type: 'datetime-local' },
  { name: 'until', label: 'Started before', type: 'datetime-local' },
];

export function RunsView({ query }) {
  const names = ['task_id', ...fields.map(({ name }) => name)];
  const list = useFilters('runs', filtersIn(query, names));
  const { filters, cursors } = list.asked;
  const { task_id, state, trigger, since, until } = filters;
  const scope = { task_id, start_time: isoOf(since), end_time: isoOf(until) };
  const runs = useData(
    async (signal) => {
      const asked = { ...scope, state, trigger, include_errors: false };
      const paging = { limit: PAGE, cursor: cursors.at(-1) };
      const page = await call('GET', 'runs', { query: { ...asked, ...paging }, signal });
      const ids = page.items.map((run) => run.task_id);
      await learnTitles(task_id === '' ? ids : [...ids, task_id], signal);
      return page;
    },
    [list.asked],
  );
  const beside =
    task_id !== '' &&
    runs.data !== undefined &&
    html`<span class="soft">of <${TaskLink} id=${task_id} /> <a href="#/runs">all</a></span>`;
  return html`<${Heading} title="Runs" beside=${beside}>
      ${
        may('tasks:write') &&
        html`<${Button} onClick=${() => retryFailed(scope, runs.reload)}>Retry failed runs …<//>`
      }
    <//>
    <${Filters} list=${list} fields=${fields} />
    <div class="results" aria-live="polite">
      <${Loaded} of=${runs}>
        ${(page) => html`<${RunsTable} runs=${page.items} hasTask=${task_id === ''} />
          <${Pages} page=${page} list=${list} one="run" />`}
      <//>
    </div>`;
}

const retryFields = [
  {
    ...{ name: 'error', label: 'Error contains', hint: 'Leave empty for any error.' },
    maxlength: 1000,
  },
  {
    ...{ name: 'from', label: 'From', value: 'failed_step' },
    options: [
      ['failed_step', 'the step that failed'],
      ['start', 'the start'],
    ],
  },
  { name: 'limit', label: 'At most', type: 'number', min: 1, max: 1000, value: '1000' },
  reasonField,
];

/** Asks which failed runs to retry, and shows first how many those are. */
async function retryFailed(scope, done) {
  const { task_id, start_time, end_time } = scope;
  const filters = Object.entries(scope).filter(([, value]) => value !== '');
  const send = async ({ error, from, limit, reason }, dry_run) => {
    const asked = error === '' ? filters : [...filters, ['error', error]];
    const body = { ...Object.fromEntries(asked), from, limit: Number(limit), dry_run };
    return (await command('runs/redrive', { reason: dry_run ? '' : reason, body })).details;
  };
  const whose =
    task_id !== ''
      ? html`of <${TaskLink} id=${task_id} />`
      : may('admin')
        ? 'of all tasks'
        : 'of your tasks';
  const when =
    start_time === '' && end_time === '' ? ', whenever they ran' : ' in the time span of the list';
  let outcome = '';
  const isDone = await ask({
    title: 'Retry failed runs',
    text: html`Retries failed runs ${whose}${when}. Runs that were retried successfully are left out.`,
    action: 'Retry them',
    fields: retryFields,
    preview: {
      action: 'How many?',
      act: async (values) => {
        const text = retryText(await send(values, true), 'would be retried');
        return html`<p class="outcome">${text}</p>`;
      },
    },
    act: async (values) => {
      const details = await send(values, false);
      outcome = retryText(details, details.count === 1 ? 'run is retried' : 'runs are retried');
    },
  });
  if (!isDone) return;
  notify(outcome);
  await done();
}

function retryText({ count: many, left, passed_over: skipped }, what) {
  const over = Object.entries(skipped).filter(([, each]) => each > 0);
  const reasons = over.map(([reason, each]) => `${count(each)} ${spaced(reason)}`);
  const texts = [
    `${count(many)} ${what}`,
    reasons.length > 0 && `left out: ${reasons.join(', ')}`,
    left > 0 && `${count(left)} not checked yet`,
  ];
  return texts.filter(Boolean).join('; ');
}
