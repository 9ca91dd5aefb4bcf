// The list of runs, with filters, and the retry of many failed runs.

import { html } from '../../preact.js';
import { call, command, may } from '../../client.js';
import { learnTitles } from '../../names.js';
import { notify } from '../../store.js';
import { count, counted, isoOf } from '../../times.js';
import { AskButton } from '../../ui/dialog.js';
import { spaced } from '../../ui/elements.js';
import { Heading } from '../../ui/layout.js';
import { Filters, List, filtersIn, useList } from '../../ui/list.js';
import { TaskLink } from '../../ui/names.js';
import { runColumns } from './runs-table.js';

const PAGE = 30;
const states = [
  'queued',
  'running',
  'waiting',
  'retrying',
  'succeeded',
  'failed',
  'canceled',
  'skipped',
];
const fields = [
  { name: 'state', label: 'State', options: ['', ...states] },
  { name: 'trigger', label: 'Trigger', options: ['', 'schedule', 'manual', 'event', 'backfill'] },
  { name: 'since', label: 'Started after', type: 'datetime-local' },
  { name: 'until', label: 'Started before', type: 'datetime-local' },
];

const readRuns = async ({ since, until, ...filters }, signal) => {
  const query = {
    ...filters,
    start_time: isoOf(since),
    end_time: isoOf(until),
    include_errors: false,
  };
  const page = await call('GET', 'runs', { query: { ...query, limit: PAGE }, signal });
  const ids = [filters.task_id, ...page.items.map((run) => run.task_id)];
  await learnTitles(ids.filter(Boolean), signal);
  return page;
};

export function RunsView({ query }) {
  const list = useList('runs', filtersIn(query, [{ name: 'task_id' }, ...fields]), readRuns);
  const { task_id: task, state, trigger, since, until } = list.asked.filters;
  const scope = { task_id: task, trigger, start_time: isoOf(since), end_time: isoOf(until) };
  const mayHaveFailed = ['', 'failed'].includes(state) && may('tasks:write');
  const beside =
    task !== '' &&
    list.data !== undefined &&
    html`<span class="soft">of <${TaskLink} id=${task} /> <a href="#/runs">all</a></span>`;
  return html`<${Heading} title="Runs" beside=${beside}>
      ${mayHaveFailed && html`<${RetryButton} scope=${scope} done=${list.reload} />`}
    <//>
    <${Filters} list=${list} fields=${fields} />
    <${List} list=${list} caption="Runs" columns=${runColumns({ hasTask: task === '' })} one="run"
      empty="No run matches." />`;
}

const starts = { failed_step: 'the step that failed', start: 'the start' };
const retryFields = [
  { name: 'error', label: 'Error contains', hint: 'Leave empty for any error.', maxlength: 1000 },
  { name: 'from', label: 'From', value: 'failed_step', options: starts },
  { name: 'limit', label: 'At most', type: 'number', min: 1, max: 1000, value: '1000' },
];

/** Asks which failed runs to retry, and shows first how many those are. */
function RetryButton({ scope, done }) {
  const { task_id: task, trigger, start_time: from, end_time: to } = scope;
  const send = async ({ error, limit, reason, ...values }, dry_run) => {
    const asked = Object.entries({ ...scope, error }).filter(([, value]) => value !== '');
    const body = { ...Object.fromEntries(asked), ...values, limit: Number(limit), dry_run };
    return (await command('runs/redrive', { reason: dry_run ? '' : reason, body })).details;
  };
  const whose =
    task !== ''
      ? html`of <${TaskLink} id=${task} />`
      : may('admin')
        ? 'of all tasks'
        : 'of your tasks';
  const limits = [
    trigger !== '' && `trigger ${trigger}`,
    (from !== '' || to !== '') && 'the time span of the list',
  ].filter(Boolean);
  const within = limits.length > 0 ? `, only ${limits.join(' and ')}` : ', whenever they ran';
  const dialog = {
    title: 'Retry failed runs',
    text: html`Retries failed runs ${whose}${within}. Runs that were retried successfully are left out.`,
    action: 'Retry runs',
    fields: retryFields,
    preview: async (values) => {
      const details = await send(values, true);
      const shown = html`<p class="outcome">${retryText(details, 'would be retried')}</p>`;
      const action = details.count === 0 ? null : `Retry ${counted(details.count, 'run')}`;
      return { shown, action, count: details.count };
    },
    // No more than were shown: others may have failed since.
    act: async (values, { count: limit }) => {
      const details = await send({ ...values, limit }, false);
      notify(retryText(details, details.count === 1 ? 'run is retried' : 'runs are retried'));
    },
  };
  return html`<${AskButton} text="Retry failed runs …" dialog=${dialog} done=${done} />`;
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
