// Creates or changes a task. The schedule's next fires are shown while it is typed.

import { call, callFully, who } from './client.js';
import { choice, h, notify, put } from './dom.js';
import { ago } from './times.js';

const example = { pipeline: [{ id: 'say', uses: 'echo', with: { text: 'Hello, it is ${now}' } }] };

/** Fields that may stay empty: then they are not sent, or taken away where they were set. */
const optionalText = ['concurrency_key', 'dedupe_key'];
const optionalNumber = [
  'dedupe_window_seconds',
  'timeout_seconds',
  'max_runs',
  'pause_after_failures',
];

const hints = {
  cron: 'Minute, hour, day, month, day of week: 0 9 * * MON-FRI. Or six fields, seconds first.',
  rrule: 'FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0',
  once: 'A date and time: 2027-01-31T09:00:00',
  event: 'A topic: orders.created. * is one segment, # any number.',
};

export async function taskForm(place, { id, signal }) {
  const { body: task, headers } =
    id === undefined ? { body: null } : await callFully('GET', `tasks/${id}`, { signal });
  const fields = {};
  const field = (name, text, control, hint) => {
    const key = name.replaceAll('_', '-');
    control.id = `field-${key}`;
    control.setAttribute('aria-describedby', `about-${key} fault-${key}`);
    const fault = h('span.fault', { id: `fault-${key}` });
    const about = h('span.hint', { id: `about-${key}` }, hint);
    fields[name] = { control, fault, about };
    return h('div.field', {}, h('label', { for: control.id }, text), control, about, fault);
  };
  const text = (name, given, attributes = {}) =>
    h('input', { name, value: task?.[name] ?? given ?? '', ...attributes });
  const number = (name, given, least, most) =>
    text(name, given, { type: 'number', min: least, max: most, step: 1 });
  const kinds = ['cron', 'rrule', 'once', 'event'];
  const kind = choice(kinds, task?.schedule_kind ?? 'cron', { name: 'schedule_kind' });
  const zone = task?.timezone ?? Intl.DateTimeFormat().resolvedOptions().timeZone;
  const upcoming = h('div', { 'aria-live': 'polite', id: 'next-fires' });
  const payload = h('textarea', {
    rows: 12,
    spellcheck: 'false',
    value: JSON.stringify(task?.payload ?? example, null, 2),
  });
  const strategies = ['exponential_jitter', 'linear', 'fixed'];
  const overlaps = ['allow', 'skip', 'queue', 'cancel_running'];
  const misfires = ['latest', 'skip', 'all'];
  const problem = h('p.fault', { role: 'alert' });
  const submit = h('button.main-action', { type: 'submit' }, task ? 'Save' : 'Create');
  const form = h(
    'form',
    { novalidate: true },
    h(
      'div.columns',
      {},
      h(
        'section',
        {},
        h('h2', {}, 'What'),
        field('title', 'Title', text('title')),
        field('description', 'Description', text('description'), 'Left out: the title.'),
        field('payload', 'Pipeline (JSON)', payload, 'Steps, carried out one after the other.'),
        field(
          'tags',
          'Tags',
          text('tags', '', { value: (task?.tags ?? []).join(', ') }),
          'Split by commas.',
        ),
      ),
      h(
        'div',
        {},
        h(
          'section',
          {},
          h('h2', {}, 'When'),
          field('schedule_kind', 'Kind', kind),
          field(
            'schedule_expr',
            'Schedule',
            text('schedule_expr', '0 9 * * MON-FRI', { spellcheck: 'false' }),
            hints.cron,
          ),
          field('timezone', 'Time zone', text('timezone', zone, { value: zone })),
          h('h2', {}, 'Next fires'),
          upcoming,
        ),
        h(
          'section',
          {},
          h('details', {}, h('summary', {}, 'Limits, retries and overlaps'), [
            field('priority', 'Priority', number('priority', 5, 1, 9), '1 goes first.'),
            field('max_retries', 'Retries', number('max_retries', 3, 0, 50)),
            field(
              'backoff_strategy',
              'Back-off',
              choice(strategies, task?.backoff_strategy ?? strategies[0]),
            ),
            field('timeout_seconds', 'Time limit of a run (s)', number('timeout_seconds', '', 1)),
            field(
              'overlap_policy',
              'While another run is unfinished',
              choice(overlaps, task?.overlap_policy ?? 'allow'),
            ),
            field(
              'misfire_policy',
              'Of fires that are too late, run',
              choice(misfires, task?.misfire_policy ?? 'latest'),
            ),
            field('concurrency_key', 'Concurrency key', text('concurrency_key')),
            field('dedupe_key', 'Dedupe key', text('dedupe_key')),
            field(
              'dedupe_window_seconds',
              'Dedupe window (s)',
              number('dedupe_window_seconds', '', 1),
            ),
            field('max_runs', 'Most fires', number('max_runs', '', 1)),
            field(
              'pause_after_failures',
              'Pause after failures in a row',
              number('pause_after_failures', '', 1),
            ),
          ]),
        ),
      ),
    ),
    problem,
    h(
      'div.row',
      {},
      submit,
      h('a.button', { href: task ? `#/tasks/${id}` : '#/tasks' }, 'Leave it'),
    ),
  );
  const valueOf = (name) => fields[name].control.value.trim();

  function showFaults(issues) {
    const rest = [];
    for (const { control, fault } of Object.values(fields)) {
      control.removeAttribute('aria-invalid');
      fault.textContent = '';
    }
    for (const { field: path, issue } of issues) {
      const at = fields[path.split('.')[0]];
      if (at === undefined) {
        rest.push(`${path}: ${issue}`);
        continue;
      }
      at.control.setAttribute('aria-invalid', 'true');
      at.fault.textContent = path.includes('.') ? `${path}: ${issue}` : issue;
      at.control.closest('details')?.setAttribute('open', '');
    }
    problem.textContent = rest.join('; ');
    form.querySelector('[aria-invalid]')?.focus();
  }

  function read() {
    const payloadText = valueOf('payload');
    let parsed;
    try {
      parsed = JSON.parse(payloadText);
    } catch (error) {
      showFaults([{ field: 'payload', issue: `is no JSON: ${error.message}` }]);
      return null;
    }
    const title = valueOf('title');
    const body = {
      title,
      description: valueOf('description') || title,
      payload: parsed,
      tags: valueOf('tags')
        .split(',')
        .map((tag) => tag.trim())
        .filter((tag) => tag !== ''),
      ...schedule(),
    };
    for (const name of ['backoff_strategy', 'overlap_policy', 'misfire_policy'])
      body[name] = valueOf(name);
    for (const name of ['priority', 'max_retries']) {
      if (valueOf(name) !== '') body[name] = Number(valueOf(name));
    }
    for (const name of [...optionalText, ...optionalNumber]) {
      const value = valueOf(name);
      const empty = task === null ? undefined : null;
      body[name] = value === '' ? empty : optionalNumber.includes(name) ? Number(value) : value;
    }
    return body;
  }

  const schedule = () => ({
    schedule_kind: kind.value,
    ...(valueOf('schedule_expr') === '' ? {} : { schedule_expr: valueOf('schedule_expr') }),
    timezone: valueOf('timezone') || 'UTC',
  });

  let turn = 0;
  let soon;
  async function preview() {
    const mine = (turn += 1);
    const faults = [fields.schedule_expr, fields.timezone];
    try {
      const body = { ...schedule(), count: 5 };
      const { fires, warnings } = await call('POST', 'schedules/preview', { body, signal });
      if (mine !== turn) return;
      for (const { control, fault } of faults) {
        control.removeAttribute('aria-invalid');
        fault.textContent = '';
      }
      put(
        upcoming,
        fires.length > 0 &&
          h(
            'ol.list',
            {},
            fires.map(({ at, local, note }) =>
              h(
                'li',
                {},
                h('time', { datetime: at }, local),
                h('span.soft', {}, ` ${ago(at)}`),
                note && h('p.hint', {}, note),
              ),
            ),
          ),
        warnings.map((warning) => h('p.hint', {}, warning)),
      );
    } catch (error) {
      if (signal.aborted || mine !== turn) return;
      put(upcoming, h('p.soft', {}, 'None: the schedule is not understood.'));
      for (const { field: path, issue } of error.issues ?? []) {
        const at = fields[path];
        if (at === undefined) continue;
        at.control.setAttribute('aria-invalid', 'true');
        at.fault.textContent = issue;
      }
      if ((error.issues ?? []).length === 0) put(upcoming, h('p.fault', {}, error.message));
    }
  }
  function typed() {
    fields.schedule_expr.about.textContent = hints[kind.value];
    clearTimeout(soon);
    soon = setTimeout(() => void preview(), 150);
  }
  for (const name of ['schedule_kind', 'schedule_expr', 'timezone']) {
    fields[name].control.addEventListener('input', typed);
  }

  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const body = read();
    if (body === null) return;
    submit.disabled = true;
    try {
      const saved =
        task === null
          ? await call('POST', 'tasks', { body: { ...body, created_by: who().agentId } })
          : await call('PUT', `tasks/${id}`, {
              body,
              headers: { 'If-Match': headers.get('etag') },
            });
      notify([`“${saved.title}” is saved.`, ...saved.warnings].join(' '));
      location.hash = `#/tasks/${saved.id}`;
    } catch (error) {
      if (error.issues?.length > 0) showFaults(error.issues);
      else if (error.status === 412)
        problem.textContent = 'Somebody else has changed this task meanwhile. Open it again.';
      else problem.textContent = error.message;
    } finally {
      submit.disabled = false;
    }
  });

  put(place, h('h1', {}, task ? `Change “${task.title}”` : 'New task'), form);
  fields.schedule_expr.about.textContent = hints[kind.value];
  await preview();
}
