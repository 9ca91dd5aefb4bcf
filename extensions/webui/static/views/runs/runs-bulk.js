// Retries and cancels many runs: the ticked ones, or all that match the filters. The count is shown first.

import { html } from '../../preact.js';
import { command, may } from '../../client.js';
import { notify } from '../../store.js';
import { count, counted } from '../../times.js';
import { AskButton } from '../../ui/dialog.js';
import { spaced } from '../../ui/elements.js';
import { TaskLink } from '../../ui/names.js';
import { filterWords, parametersOf } from './runs-filters.js';

const unfinished = ['queued', 'running', 'waiting', 'retrying'];
const starts = { failed_step: 'the step that failed', start: 'the start' };
const limitField = {
  name: 'limit',
  label: 'At most',
  type: 'number',
  min: 1,
  max: 1000,
  value: '1000',
};
const retryFields = [
  { name: 'from', label: 'From', value: 'failed_step', options: starts },
  limitField,
];
const errorField = {
  name: 'error',
  label: 'Error contains',
  hint: 'Leave empty for any error.',
  maxlength: 500,
};

/** The texts of each button, by the path of its command. */
const kinds = {
  'runs/redrive': {
    verb: 'Retry',
    all: 'Retry failed runs …',
    title: 'Retry failed runs',
    note: 'Runs that were retried successfully are left out.',
    one: 'run is retried',
    several: 'runs are retried',
    would: 'would be retried',
  },
  'runs/cancel': {
    verb: 'Cancel',
    all: 'Cancel unfinished runs …',
    title: 'Cancel unfinished runs',
    note: 'Running ones are asked to stop, and abandoned after ten seconds.',
    one: 'run is canceled',
    several: 'runs are canceled',
    would: 'would be canceled',
  },
};

/**
 * The buttons of the list.
 * @param {object} filters of the list; `task` found by its search
 * @param {Set<string>} ticked ids of runs
 */
export function BulkButtons({ filters, task, ticked, done }) {
  if (!may('tasks:write')) return null;
  const { state } = filters;
  const mayRetry = ['', 'failed'].includes(state) || ticked.size > 0;
  const mayCancel = ['', ...unfinished].includes(state) || ticked.size > 0;
  const given = { filters, task, ticked, done };
  return html`${mayRetry && html`<${BulkButton} key="retry" path="runs/redrive" ...${given} />`}
    ${mayCancel && html`<${BulkButton} key="cancel" path="runs/cancel" ...${given} />`}`;
}

function BulkButton({ path, filters, task, ticked, done }) {
  const kind = kinds[path];
  const isCancel = path === 'runs/cancel';
  const isTicked = ticked.size > 0;
  const { state, ...scope } = parametersOf(filters, task);
  const stated = isCancel && unfinished.includes(state) ? { state } : {};
  const meant = isTicked ? { run_ids: [...ticked] } : { ...scope, ...stated };
  const send = async ({ limit, reason, ...values }, dry_run) => {
    const asked = Object.entries({ ...meant, ...values }).filter(([, value]) => value !== '');
    const body = { ...Object.fromEntries(asked), limit: Number(limit), dry_run };
    return (await command(path, { reason: dry_run ? '' : reason, body })).details;
  };
  const hasErrorFilter = filters.error_group !== '' || (filters.by === 'error' && filters.q !== '');
  const fields = isCancel
    ? [limitField]
    : [...(isTicked || hasErrorFilter ? [] : [errorField]), ...retryFields];
  const dialog = {
    title: isTicked ? `${kind.verb} the ticked runs` : kind.title,
    text: html`${kind.verb} ${isTicked ? counted(ticked.size, 'ticked run') : whose(filters, task)}.
      ${' '}${kind.note}`,
    action: `${kind.verb} runs`,
    fields,
    preview: async (values) => {
      const details = await send(values, true);
      const shown = html`<p class="outcome">${outcomeText(details, kind.would)}</p>`;
      const action = details.count === 0 ? null : `${kind.verb} ${counted(details.count, 'run')}`;
      return { shown, action, count: details.count };
    },
    // The limit is the number shown, because more runs may match by now.
    act: async (values, { count: limit }) => {
      const details = await send({ ...values, limit }, false);
      notify(outcomeText(details, details.count === 1 ? kind.one : kind.several));
    },
  };
  const text = isTicked ? `${kind.verb} ${counted(ticked.size, 'ticked run')} …` : kind.all;
  return html`<${AskButton} text=${text} kind=${isCancel ? 'danger' : ''} dialog=${dialog} done=${done} />`;
}

/** `failed runs of all tasks, only state queued and last hour` */
function whose(filters, found) {
  const task = found ?? filters.task_id;
  const of =
    task !== ''
      ? html`runs of <${TaskLink} id=${task} />`
      : may('admin')
        ? 'runs of all tasks'
        : 'runs of your tasks';
  const limits = filterWords(filters);
  return html`${of}${limits.length > 0 ? `, only ${limits.join(' and ')}` : ', whenever they ran'}`;
}

/** Says what a command for many runs has done or would do. @param what such as `retried` */
export function outcomeText({ count: many, left, passed_over: skipped }, what) {
  const over = Object.entries(skipped).filter(([, each]) => each > 0);
  const reasons = over.map(([reason, each]) => `${count(each)} ${spaced(reason)}`);
  const texts = [
    `${count(many)} ${what}`,
    reasons.length > 0 && `left out: ${reasons.join(', ')}`,
    left > 0 && `${count(left)} not checked yet`,
  ];
  return texts.filter(Boolean).join('; ');
}
