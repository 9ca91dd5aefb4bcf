// Creates or changes a task. While the person types, it shows the next fires, errors at their fields, and what saving
// would do.

import { html, useLayoutEffect, useRef, useState } from '../../preact.js';
import { useRemembered } from '../../address.js';
import { agentId, call, callFully, command, reasonHeader } from '../../client.js';
import { useData } from '../../data.js';
import { parseTyped } from '../../json.js';
import { notify } from '../../store.js';
import { Button } from '../../ui/elements.js';
import { Heading, LoadedView, Section } from '../../ui/layout.js';
import { Field } from '../../ui/field.js';
import { PipelineEditor } from './pipeline-editor.js';
import { NextFires, usePreview } from './schedule-preview.js';
import { checkTask, DryRun, useCheck } from './task-check.js';
import { bodyOf, fieldsOf, moreFields, scheduleHints } from './task-fields.js';

/** The longest title, in characters. */
const MAX_TITLE = 200;
const kinds = ['cron', 'rrule', 'once', 'event'];
const zones = Intl.supportedValuesOf?.('timeZone') ?? [];

/** The form as a view of its own. @param {URLSearchParams} query `from`: the id of the task to copy */
export function TaskForm({ id, query }) {
  const from = id === undefined ? query.get('from') : null;
  const read = async (signal) => {
    if (id !== undefined) return callFully('GET', `tasks/${id}`, { signal });
    return { body: null, copied: from && (await call('GET', `tasks/${from}`, { signal })) };
  };
  const task = useData(read, []);
  return html`<${LoadedView} of=${task}>
    ${({
      body,
      headers,
      copied,
    }) => html`<${Heading} title=${body ? `Change “${body.title}”` : 'New task'} />
      <${Form} task=${body} etag=${headers?.get('etag')} copied=${copied} />`}
  <//>`;
}

/** The values of the form, the errors in them, and the properties of a field by its name. */
function useForm(task, etag, copied) {
  const [initial] = useState(() =>
    fieldsOf(copied ? { ...copied, title: `Copy of ${copied.title}`.slice(0, MAX_TITLE) } : task),
  );
  // Text typed for an earlier revision would undo changes that others have made since.
  const [typed, setValues, forget] = useRemembered(`task ${etag ?? 'new'}`, initial);
  const values = { ...initial, ...typed };
  const [faults, setFaults] = useState({});
  const change = (name) => (value) => {
    setValues((before) => ({ ...before, [name]: value }));
    if (jsonFields.includes(name)) {
      setFaults((before) => ({ ...before, [name]: jsonFault(name, value) }));
    }
  };
  const field = (name) => ({
    id: name.replaceAll('_', '-'),
    value: values[name],
    onInput: change(name),
    fault: faults[name],
  });
  return { initial, values, faults, setFaults, field, forget };
}

/** Fields that hold JSON. */
const jsonFields = ['payload', 'params_schema'];

/** The error in JSON as it is typed, or `''`. */
function jsonFault(name, text) {
  if (name === 'params_schema' && text.trim() === '') return '';
  try {
    parseTyped(text);
    return '';
  } catch (error) {
    return error instanceof SyntaxError ? `invalid JSON: ${error.message}` : error.message;
  }
}

/** @param task null for a new one; `etag`: of the shown task; `copied`: the task that a new one is a copy of */
export function Form({ task, etag, copied }) {
  const form = useForm(task, etag, copied);
  const { initial, values, faults, setFaults } = form;
  const preview = usePreview(task, initial, values, setFaults);
  const check = useCheck(task, initial, values);
  const [dryRun, setDryRun] = useState(null);
  const [problem, setProblem] = useState('');
  const [isBusy, setBusy] = useState(false);
  const element = useRef();
  const focusFault = () =>
    setTimeout(() => element.current?.querySelector('[aria-invalid]')?.focus());
  const save = async () => {
    const body = bodyOf(values, task && initial);
    const headers = { 'If-Match': etag, ...reasonHeader(values.reason.trim()) };
    const saved = task
      ? await call('PUT', `tasks/${task.id}`, { body, headers })
      : await command('tasks', { body: { ...body, created_by: agentId() } });
    form.forget();
    notify([`“${saved.title}” was saved.`, ...saved.warnings].join(' '));
    location.hash = `#/tasks/${saved.id}`;
  };
  const showError = ({ status, message, issues = [] }) => {
    const { known, others } = sortIssues(issues, values);
    setFaults(known);
    const changed = 'Somebody else has changed this task. Open it again.';
    setProblem(issues.length > 0 ? others : status === 412 ? changed : message);
  };
  const isJson = () => {
    const found = jsonFields.map((name) => [name, jsonFault(name, values[name])]);
    setFaults((before) => ({ ...before, ...Object.fromEntries(found) }));
    return found.every(([, fault]) => fault === '');
  };
  const submit = async (event) => {
    event.preventDefault();
    if (isBusy) return undefined;
    if (!isJson()) return focusFault();
    setBusy(true);
    await save().catch(showError);
    setBusy(false);
    return focusFault();
  };
  const tryOut = async () => {
    if (!isJson()) return focusFault();
    const result = await checkTask(task, bodyOf(values, task && initial));
    setDryRun(result);
    if (!result.valid)
      setFaults((before) => ({ ...before, ...sortIssues(result.issues, values).known }));
    return undefined;
  };
  const reason = html`<${Section} title="Reason">
    <${Field} label="Why (goes into the log)" maxlength="500" ...${form.field('reason')} />
  <//>`;
  return html`<form novalidate ref=${element} onSubmit=${submit}>
      <div class="columns">
        <${TaskPart} field=${form.field} check=${check} />
        <div>
          <${SchedulePart} field=${form.field} kind=${values.schedule_kind} preview=${preview} />
          <${MorePart} field=${form.field} faults=${faults} />
        </div>
      </div>
      ${task && reason}
      <p class="fault" role="alert">${problem}</p>
      <div class="row">
        <button class="main-action" type="submit" aria-busy=${isBusy}>${task ? 'Save' : 'Create'}</button>
        <${Button} onClick=${tryOut}>Dry run<//>
        <a class="button" href=${task ? `#/tasks/${task.id}` : '#/tasks'}>Cancel</a>
      </div>
      <div aria-live="polite" id="dry-run">${dryRun && html`<${DryRun} result=${dryRun} />`}</div>
    </form>`;
}

/** Issues by the field that they belong to, and the others in one line. */
function sortIssues(issues, values) {
  const known = {};
  const others = [];
  for (const { field: path, issue } of issues) {
    const [name] = path.split('.');
    if (name in values) known[name] = path.includes('.') ? `${path}: ${issue}` : issue;
    else others.push(`${path}: ${issue}`);
  }
  return { known, others: others.join('; ') };
}

/** While it is typed, its own faults come first, then the faults that the service would report. */
const payloadField = (field, [fault = '']) => ({ ...field, fault: field.fault || fault });

/** As many rows as the value has lines. */
const linesOf = ({ value }) => Math.min(8, value.split('\n').length);

const TaskPart = ({ field, check }) =>
  html`<${Section} title="Task">
    <${Field} label="Title" ...${field('title')} />
    <${Field} label="Description" type="textarea" class="text" rows=${linesOf(field('description'))}
      spellcheck hint="Defaults to the title." ...${field('description')} />
    <${PipelineEditor} field=${payloadField(field('payload'), check.faults)} findings=${check.findings} />
    <${Field} label="Tags" hint="Separated by commas." ...${field('tags')} />
  <//>`;

function SchedulePart({ field, kind, preview }) {
  const submitOnEnter = (event) => {
    // Only rules have several lines.
    if (event.key !== 'Enter' || event.isComposing || kind === 'rrule') return;
    event.preventDefault();
    event.target.form.requestSubmit();
  };
  const expression = field('schedule_expr');
  return html`<${Section} title="Schedule">
    <div class="pairs">
      <${Field} label="Kind" options=${kinds} ...${field('schedule_kind')} />
      <${Field} label="Time zone" list="zones" ...${field('timezone')} />
    </div>
    <${Field} label="Schedule" type="textarea" rows=${linesOf(expression)} hint=${scheduleHints[kind]}
      onKeyDown=${submitOnEnter} ...${expression} />
    <datalist id="zones">${zones.map((value) => html`<option value=${value}></option>`)}</datalist>
    <h3>Next fires</h3>
    <${NextFires} preview=${preview} />
  <//>`;
}

function MorePart({ field, faults }) {
  const details = useRef();
  useLayoutEffect(() => {
    if (moreFields.some(({ name }) => faults[name])) details.current.open = true;
  }, [faults]);
  return html`<section>
    <details ref=${details}>
      <summary>Limits, retries and overlaps</summary>
      <div class="pairs">
        ${moreFields.map(({ initial: _initial, ...each }) => html`<${Field} key=${each.name} ...${each} ...${field(each.name)} />`)}
      </div>
    </details>
  </section>`;
}
