// The list of runs, with filters, and retries of many at once.

import { call, may, order } from './client.js';
import { ask, reasonField } from './dialog.js';
import { attempt, button, choice, failure, h, heading, labelled, put } from './dom.js';
import { learnTitles, taskLink } from './names.js';
import { keepInAddress, Pages, settled, turns } from './paging.js';
import { runsTable } from './runs-table.js';
import { count } from './times.js';

const states = ['queued', 'running', 'retrying', 'succeeded', 'failed', 'canceled', 'skipped'];
const triggers = ['schedule', 'manual', 'event', 'backfill'];
const PAGE = 30;

export async function runsView(place, { query, signal }) {
  const status = choice([['', 'any'], ...states], query.get('state') ?? '');
  const trigger = choice([['', 'any'], ...triggers], query.get('trigger') ?? '');
  const instant = (name) =>
    h('input', { type: 'datetime-local', step: 1, value: query.get(name) ?? '' });
  const since = instant('since');
  const until = instant('until');
  const task_id = query.get('task_id');
  const results = h('div', { 'aria-live': 'polite' });
  const title = h('span.soft');
  const pages = new Pages();
  const nextTurn = turns(signal);
  const iso = ({ value }) => (value === '' ? '' : new Date(value).toISOString());
  const asks = () => ({
    ...{ state: status.value, trigger: trigger.value, task_id },
    ...{ start_time: iso(since), end_time: iso(until) },
  });

  async function load() {
    const isLatest = nextTurn();
    keepInAddress('runs', {
      ...{ state: status.value, trigger: trigger.value, task_id },
      ...{ since: since.value, until: until.value },
    });
    try {
      const page = await call('GET', 'runs', {
        query: { ...asks(), include_errors: false, limit: PAGE, cursor: pages.cursor },
        signal,
      });
      const ids = page.items.map((run) => run.task_id);
      await learnTitles(task_id === null ? ids : [...ids, task_id], signal);
      if (!isLatest()) return;
      if (task_id !== null)
        put(title, 'of ', taskLink(task_id), ' ', h('a', { href: '#/runs' }, 'all'));
      put(results, runsTable(page.items, { task: task_id === null }), pages.bar(page, 'run', load));
    } catch (error) {
      if (isLatest()) put(results, failure(error, load));
    }
  }
  const changed = settled(
    150,
    () => {
      pages.reset();
      return load();
    },
    signal,
  );
  for (const control of [status, trigger, since, until]) {
    control.addEventListener('input', changed);
  }
  put(
    place,
    heading(
      'Runs',
      title,
      may('tasks:write') &&
        button('Retry failed ones …', () => redrive(task_id, iso(since), iso(until), load)),
    ),
    h(
      'div.row.filters',
      { role: 'search' },
      labelled('State', status),
      labelled('Begun by', trigger),
      labelled('Started after', since),
      labelled('Started before', until),
    ),
    results,
  );
  await load();
}

/** Asks which failed runs are to be retried, shows how many those are, and orders it. */
async function redrive(task_id, start_time, end_time, done) {
  const bodyOf = ({ error, from, limit }, dry_run) => ({
    ...(task_id === null ? {} : { task_id }),
    ...(start_time === '' ? {} : { start_time }),
    ...(end_time === '' ? {} : { end_time }),
    ...(error === '' ? {} : { error }),
    ...{ from, limit: Number(limit), dry_run },
  });
  let told = '';
  const went = await ask({
    title: 'Retry failed runs',
    text: [
      task_id !== null
        ? ['Of ', taskLink(task_id)]
        : may('admin')
          ? 'Of all tasks'
          : 'Of your tasks',
      start_time === '' && end_time === ''
        ? ', whenever they ran'
        : ', within the times of the list',
      '. What has been retried with success is left out.',
    ],
    action: 'Retry them',
    fields: [
      {
        name: 'error',
        label: 'Whose error has',
        hint: 'A part of it; left out: any.',
        control: () => h('input', { maxlength: 1000, autocomplete: 'off', spellcheck: 'false' }),
      },
      {
        name: 'from',
        label: 'From',
        control: () =>
          choice(
            [
              ['failed_step', 'the step that failed'],
              ['start', 'the start'],
            ],
            'failed_step',
          ),
      },
      {
        name: 'limit',
        label: 'At most',
        control: () => h('input', { type: 'number', min: 1, max: 1000, value: 1000 }),
      },
      reasonField,
    ],
    preview: {
      action: 'How many?',
      async act(values) {
        const { details } = await order('runs/redrive', { body: bodyOf(values, true) });
        return h('p.told', {}, saying(details, 'would be retried'));
      },
    },
    async act(values) {
      const { details } = await order('runs/redrive', {
        ...{ reason: values.reason, body: bodyOf(values, false) },
      });
      told = saying(details, details.count === 1 ? 'is retried' : 'are retried');
    },
  });
  if (!went) return;
  await attempt(done, told);
}

function saying({ count: many, left, passed_over }, what) {
  const over = Object.entries(passed_over).filter(([, each]) => each > 0);
  const why = over.map(([reason, each]) => `${count(each)} ${reason.replaceAll('_', ' ')}`);
  return [
    `${count(many)} ${what}`,
    why.length > 0 && `; left out: ${why.join(', ')}`,
    left > 0 && `; ${count(left)} not looked at yet`,
  ]
    .filter(Boolean)
    .join('');
}
