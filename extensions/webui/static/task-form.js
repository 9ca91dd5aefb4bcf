// Creates or changes a task. The schedule's next fires are shown while it is typed, and faults at the field.

import { call, callFully, order, reasonHeader, who } from './client.js';
import { choice, h, heading, notify, put } from './dom.js';
import { parseTyped, writeJson } from './json-input.js';
import { settled, turns } from './paging.js';
import { defaults, example, hints, moreFields, readTask } from './task-fields.js';
import { moment, when } from './times.js';

/** Whether a local time is that of the browser too. */
const isHere = (local, at) => {
  const here = new Date(Date.parse(at) - new Date(at).getTimezoneOffset() * 60_000);
  return here.toISOString().slice(0, 19) === local.slice(0, 19);
};

/** A fire of a preview, by the clock of its schedule and by the reader's. */
const fireToCome = ({ at, local, note }) =>
  h(
    'li',
    {},
    h('code', {}, local.slice(0, 19).replace('T', ' ')),
    h(
      'span.soft',
      {},
      ` ${local.slice(19)} `,
      !isHere(local, at) && ['(yours ', moment(at), ') '],
      when(at),
    ),
    note && h('p.hint', {}, note),
  );

export async function taskForm(place, { id, signal }) {
  const { body: task, headers } =
    id === undefined ? { body: null } : await callFully('GET', `tasks/${id}`, { signal });
  const given = task ?? defaults();
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
  const text = (name, attributes = {}) => h('input', { value: given[name] ?? '', ...attributes });
  const kinds = ['cron', 'rrule', 'once', 'event'];
  const kind = choice(kinds, given.schedule_kind);
  const upcoming = h('div', { 'aria-live': 'polite', id: 'next-fires' });
  // Fields of one line would lose the breaks between lines: of a rule with its DTSTART, and of what is described.
  const several = (name, attributes) => {
    const value = given[name] ?? '';
    return h('textarea', { rows: Math.min(8, value.split('\n').length), value, ...attributes });
  };
  const description = several('description', { class: 'text' });
  const expression = several('schedule_expr', { spellcheck: 'false' });
  const payload = h('textarea', {
    rows: 14,
    spellcheck: 'false',
    value: writeJson(task?.payload ?? example, 2),
  });
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
        field('description', 'Description', description, 'Left out: the title.'),
        field('payload', 'Pipeline (JSON)', payload, 'Steps, carried out one after the other.'),
        field('tags', 'Tags', text('tags', { value: given.tags.join(', ') }), 'Split by commas.'),
      ),
      h(
        'div',
        {},
        h(
          'section',
          {},
          h('h2', {}, 'When'),
          h(
            'div.pair',
            {},
            field('schedule_kind', 'Kind', kind),
            field('timezone', 'Time zone', text('timezone', { list: 'zones' })),
          ),
          field('schedule_expr', 'Schedule', expression, hints[given.schedule_kind]),
          h(
            'datalist',
            { id: 'zones' },
            (Intl.supportedValuesOf?.('timeZone') ?? []).map((value) => h('option', { value })),
          ),
          h('h3', {}, 'Next fires'),
          upcoming,
        ),
        h(
          'section',
          {},
          h(
            'details',
            {},
            h('summary', {}, 'Limits, retries and overlaps'),
            h(
              'div.pairs',
              {},
              moreFields(given).map((each) =>
                field(each.name, each.label, each.control, each.hint),
              ),
            ),
          ),
        ),
      ),
    ),
    task !== null &&
      h(
        'section',
        {},
        field('reason', 'Why it is changed (goes into the log)', h('input', { maxlength: 500 })),
      ),
    problem,
    h(
      'div.row',
      {},
      submit,
      h('a.button', { href: task ? `#/tasks/${id}` : '#/tasks' }, 'Leave it'),
    ),
  );
  const valueOf = (name) => fields[name]?.control.value.trim() ?? '';
  const asGiven = new Map(Object.keys(fields).map((name) => [name, valueOf(name)]));
  const changed = (name) => valueOf(name) !== asGiven.get(name);

  function setFault(name, issue) {
    const { control, fault } = fields[name];
    if (issue === '') control.removeAttribute('aria-invalid');
    else control.setAttribute('aria-invalid', 'true');
    if (fault.textContent !== issue) fault.textContent = issue;
  }

  function showFaults(issues) {
    const rest = [];
    for (const name of Object.keys(fields)) setFault(name, '');
    for (const { field: path, issue } of issues) {
      const [name] = path.split('.');
      if (fields[name] === undefined) {
        rest.push(`${path}: ${issue}`);
        continue;
      }
      setFault(name, path.includes('.') ? `${path}: ${issue}` : issue);
      fields[name].control.closest('details')?.setAttribute('open', '');
    }
    problem.textContent = rest.join('; ');
    form.querySelector('[aria-invalid]')?.focus();
  }

  /** @returns whether the pipeline is JSON, with numbers that can be sent */
  function checkPayload() {
    try {
      parseTyped(valueOf('payload'));
      setFault('payload', '');
      return true;
    } catch (error) {
      const what = error instanceof SyntaxError ? `is no JSON: ${error.message}` : error.message;
      setFault('payload', what);
      return false;
    }
  }

  /** What the preview asks about: a fault at any of these is shown there. */
  const previewed = ['schedule_kind', 'schedule_expr', 'timezone', 'starts_at', 'ends_at'];
  const schedule = () =>
    Object.fromEntries(
      previewed.map((name) => [name, valueOf(name)]).filter(([, value]) => value !== ''),
    );

  const nextTurn = turns(signal);
  async function preview() {
    const isLatest = nextTurn();
    try {
      // A rule without DTSTART begins when it was set: as long as nobody changes it, that is not now.
      const asItIs = task !== null && !previewed.some(changed);
      const asks = asItIs ? { task_id: id } : { timezone: 'UTC', ...schedule() };
      const body = { ...asks, count: 5 };
      // Not the service's own: what is still typed is mostly wrong, and no error of anybody.
      const said = await call('POST', 'ext/webui/api/preview', { body, signal });
      if (!isLatest()) return;
      if (said.valid) showFires(said);
      else showRefused(said);
    } catch (error) {
      if (isLatest()) put(upcoming, h('p.soft', {}, error.message));
    }
  }

  function showFires({ schedule_text, fires, warnings }) {
    for (const name of previewed) setFault(name, '');
    put(
      upcoming,
      h('p', {}, schedule_text),
      fires.length > 0 && h('ol.list', {}, fires.map(fireToCome)),
      warnings.map((warning) => h('p.hint', {}, warning)),
    );
  }

  function showRefused({ message, issues: all }) {
    const issues = all.filter((each) => previewed.includes(each.field));
    for (const name of previewed) {
      setFault(name, issues.find((each) => each.field === name)?.issue ?? '');
    }
    put(upcoming, h('p.soft', {}, issues.length > 0 ? 'None: see the field.' : message));
  }
  const soon = settled(150, preview, signal);
  for (const name of previewed) {
    fields[name].control.addEventListener('input', () => {
      fields.schedule_expr.about.textContent = hints[kind.value];
      soon();
    });
  }
  payload.addEventListener('input', settled(300, checkPayload, signal));
  expression.addEventListener('keydown', (event) => {
    // Only rules have several lines; elsewhere the key means what it does in any field.
    if (event.key !== 'Enter' || event.isComposing || kind.value === 'rrule') return;
    event.preventDefault();
    form.requestSubmit();
  });

  async function save() {
    if (!checkPayload()) {
      payload.focus();
      return;
    }
    const body = task === null ? readTask(valueOf) : readTask(valueOf, changed);
    submit.disabled = true;
    try {
      const saved =
        task === null
          ? await order('tasks', { body: { ...body, created_by: who().agentId } })
          : await call('PUT', `tasks/${id}`, {
              body,
              headers: { 'If-Match': headers.get('etag'), ...reasonHeader(valueOf('reason')) },
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
  }
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    void save();
  });

  put(place, heading(task ? `Change “${task.title}”` : 'New task'), form);
  await preview();
}
