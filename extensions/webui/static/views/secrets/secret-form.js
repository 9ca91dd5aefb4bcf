// Sets a secret: a new one, or the next version. The present value is shown nowhere.

import { html } from '../../preact.js';
import { call, callFully, reasonHeader } from '../../client.js';
import { useData } from '../../data.js';
import { learnTitles } from '../../names.js';
import { getState, notify, useStore } from '../../store.js';
import { Field } from '../../ui/field.js';
import { Form, ReasonField, useForm } from '../../ui/form.js';
import { Heading, LoadedView } from '../../ui/layout.js';
import { TaskPicker } from '../../ui/task-picker.js';

const scopes = { all: 'all tasks', some: 'only these tasks' };

/** @param name of the secret to replace; left out for a new one */
export function SecretForm({ name, query }) {
  const namespace = query.get('namespace') ?? '';
  const read = async (signal) => {
    if (name === undefined) return { secret: null };
    const path = `secrets/${encodeURIComponent(name)}`;
    const { body, headers } = await callFully('GET', path, { query: { namespace }, signal });
    await learnTitles(body.allow_tasks ?? [], signal);
    return { secret: body, etag: headers.get('etag') };
  };
  const found = useData(read, []);
  return html`<${LoadedView} of=${found}>${(each) => html`<${Fields} ...${each} />`}<//>`;
}

function Fields({ secret, etag }) {
  const namespaces = useStore((state) => state.namespaces);
  const isNew = secret === null;
  const initial = {
    name: secret?.name ?? '',
    namespace: secret?.namespace ?? getState().namespace,
    value: '',
    allow_hosts: (secret?.allow_hosts ?? []).join('\n'),
    use: (secret?.allow_tasks ?? null) === null ? 'all' : 'some',
    allow_tasks: secret?.allow_tasks ?? [],
    reason: '',
  };
  const send = async (values) => {
    const saved = await save(values, isNew ? undefined : etag);
    notify(`${saved.name} is set: version ${saved.version}.`);
    location.hash = '#/secrets';
  };
  const form = useForm(initial, send, ['value']);
  const isChoosing = isNew && namespaces.length > 1;
  const options = Object.fromEntries([
    ['', 'that of your agent'],
    ...namespaces.map((each) => [each, each]),
  ]);
  const hint = isNew ? 'A secret of the same name would get the next version.' : '';
  return html`<${Heading} title=${isNew ? 'New secret' : `Replace ${secret.name}`} />
    <${Form} form=${form} action=${isNew ? 'Set' : 'Replace'} back="secrets">
      ${isNew && html`<${Field} label="Name" placeholder="API_TOKEN" hint=${hint} ...${form.field('name')} />`}
      ${isChoosing && html`<${Field} label="Namespace" options=${options} ...${form.field('namespace')} />`}
      <${Field} label="Value" type="textarea" rows="3" class="secret"
        hint="It is never shown again. A line break at its end is left out." ...${form.field('value')} />
      <${Field} label="Sent to (hosts, one a line)" type="textarea" rows="3" placeholder="api.example.com"
        hint="names or addresses, with :port where only that is meant; * for everywhere; without one, it is sent nowhere"
        ...${form.field('allow_hosts')} />
      <${Field} label="Used by" options=${scopes} ...${form.field('use')} />
      ${
        form.values.use === 'some' &&
        html`<${TaskPicker} label="Tasks that may use it" chosen=${form.values.allow_tasks}
          onChange=${(tasks) => form.set('allow_tasks', tasks)} fault=${form.faults.allow_tasks} />`
      }
      <${ReasonField} form=${form} />
    <//>`;
}

/** Sent without an Idempotency-Key, whose record would keep a hash of the value. */
function save(
  { name, namespace, value, allow_hosts: hosts, use, allow_tasks: tasks, reason },
  etag,
) {
  const body = {
    value: value.replace(/\r?\n$/, ''),
    allow_hosts: hosts.split(/[\s,]+/).filter((each) => each !== ''),
    allow_tasks: use === 'all' ? null : tasks,
  };
  const headers = {
    ...(etag === undefined ? {} : { 'If-Match': etag }),
    ...reasonHeader(reason.trim()),
  };
  const path = `secrets/${encodeURIComponent(name.trim())}`;
  return call('PUT', path, { body, headers, query: { namespace } });
}
