// Creates a secret, or sets the next version of one. The present value is never shown.
// For an existing secret, it also shows the expiry and the tasks that use it, even to agents that may not set it.

import { html } from '../../preact.js';
import { call, callFully, may, reasonHeader } from '../../client.js';
import { useData } from '../../data.js';
import { learnTitle, learnTitles } from '../../names.js';
import { getState, notify, useStore } from '../../store.js';
import { counted } from '../../times.js';
import { Nothing, State } from '../../ui/elements.js';
import { Expiry, LifetimeFields, expiryOf, lifetimeLike, lifetimeOf } from '../../ui/expiry.js';
import { Field } from '../../ui/field.js';
import { Form, ReasonField, useForm } from '../../ui/form.js';
import { Facts, Heading, Loaded, LoadedView, Section } from '../../ui/layout.js';
import { TaskLink, When } from '../../ui/names.js';
import { Updates, useUpdates } from '../../ui/updates.js';
import { TaskPicker } from '../../ui/task-picker.js';
import { EXPIRY_WARNING_MS } from './secret-address.js';
import { mayWriteSecrets } from './secrets.js';

/** Tasks that are named. */
const MAX_TASKS = 20;
/** The interval of reads of these tasks, in milliseconds. */
const BEAT = 5000;
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
  return html`<${LoadedView} of=${found}>
    ${(each) => html`
      ${name === undefined || mayWriteSecrets() ? html`<${Fields} ...${each} />` : html`<${Heading} title=${name} />`}
      ${each.secret !== null && html`<${Present} secret=${each.secret} />`}
    `}
  <//>`;
}

/** A secret as it is now. */
function Present({ secret }) {
  const { version, expires_at: at, last_used: use } = secret;
  return html`<${Section} title="Now">
      <${Facts} of=${[
        ['Version', version],
        ['Expires', html`<${Expiry} at=${at} soon=${EXPIRY_WARNING_MS} />`],
        ['Last use', use === null ? 'never' : html`<${When} at=${use.at} />`],
      ]} />
    <//>
    ${may('tasks:read') && html`<${UsingTasks} secret=${secret} />`}`;
}

/** The tasks whose pipelines name it, the newest first. */
function UsingTasks({ secret: { name, namespace } }) {
  const tasks = useUpdates(
    async (signal) => {
      const query = { secret: name, namespace, limit: MAX_TASKS };
      const page = await call('GET', 'tasks', { query, signal });
      page.items.forEach(learnTitle);
      return page;
    },
    [name, namespace],
    { every: BEAT },
  );
  return html`<${Section} title="Tasks that use it" aside=${html`<${Updates} of=${tasks} />`}>
    <${Loaded} of=${tasks}>
      ${({ items, total }) =>
        total === 0
          ? html`<${Nothing} text="No task uses it." />`
          : html`<ul class="list">
              ${items.map(({ id, status }) => html`<li key=${id}><${TaskLink} id=${id} /> <${State} of=${status} /></li>`)}
              ${total > items.length && html`<li><a href="#/tasks?secret=${name}">All ${counted(total, 'task')}</a></li>`}
            </ul>`}
    <//>
  <//>`;
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
    ...(isNew ? lifetimeOf('') : lifetimeLike(secret)),
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
  const hint = isNew ? 'If a secret has this name already, it gets a new version.' : '';
  return html`<${Heading} title=${isNew ? 'New secret' : `Replace ${secret.name}`} />
    <${Form} form=${form} action=${isNew ? 'Set' : 'Replace'} back="secrets">
      ${isNew && html`<${Field} label="Name" placeholder="API_TOKEN" hint=${hint} ...${form.field('name')} />`}
      ${isChoosing && html`<${Field} label="Namespace" options=${options} ...${form.field('namespace')} />`}
      <${Field} label="Value" type="textarea" rows="3" class="secret"
        hint="It is never shown again. A line break at its end is left out." ...${form.field('value')} />
      <${Field} label="May be sent to (one host per line)" type="textarea" rows="3" placeholder="api.example.com"
        hint="names or addresses, each with :port to allow only that port; * allows every host; an empty list allows none"
        ...${form.field('allow_hosts')} />
      <${LifetimeFields} form=${form} />
      <${Field} label="Used by" options=${scopes} ...${form.field('use')} />
      ${
        form.values.use === 'some' &&
        html`<${TaskPicker} label="Tasks that may use it" chosen=${form.values.allow_tasks}
          onChange=${(tasks) => form.set('allow_tasks', tasks)} fault=${form.faults.allow_tasks} />`
      }
      <${ReasonField} form=${form} />
    <//>`;
}

/** The request carries no Idempotency-Key, because its record would contain a hash of the value. */
function save(
  { name, namespace, value, allow_hosts: hosts, use, allow_tasks: tasks, reason, ...lifetime },
  etag,
) {
  const body = {
    value: value.replace(/\r?\n$/, ''),
    allow_hosts: hosts.split(/[\s,]+/).filter((each) => each !== ''),
    allow_tasks: use === 'all' ? null : tasks,
    expires_at: expiryOf(lifetime),
  };
  const headers = {
    ...(etag === undefined ? {} : { 'If-Match': etag }),
    ...reasonHeader(reason.trim()),
  };
  const path = `secrets/${encodeURIComponent(name.trim())}`;
  return call('PUT', path, { body, headers, query: { namespace } });
}
