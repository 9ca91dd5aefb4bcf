// Creates a namespace, or changes its description.

import { html } from '../../preact.js';
import { call, callFully, command, reasonHeader } from '../../client.js';
import { useData } from '../../data.js';
import { findNamespaces } from '../../namespaces.js';
import { notify } from '../../store.js';
import { Field } from '../../ui/field.js';
import { Form, ReasonField, useForm } from '../../ui/form.js';
import { Heading, LoadedView } from '../../ui/layout.js';

/** @param name of the namespace to change; left out for a new one */
export function NamespaceForm({ name }) {
  const read = (signal) =>
    name === undefined
      ? { body: null }
      : callFully('GET', `namespaces/${encodeURIComponent(name)}`, { signal });
  const found = useData(read, []);
  return html`<${LoadedView} of=${found}>
    ${({ body, headers }) => html`<${Fields} namespace=${body} etag=${headers?.get('etag')} />`}
  <//>`;
}

function Fields({ namespace, etag }) {
  const isNew = namespace === null;
  const initial = {
    name: namespace?.name ?? '',
    description: namespace?.description ?? '',
    reason: '',
  };
  const form = useForm(initial, async (values) => {
    const { name } = await save(values, isNew ? undefined : etag);
    await findNamespaces((path, query) => call('GET', path, { query }));
    notify(isNew ? `The namespace ${name} is created.` : `The namespace ${name} is saved.`);
    location.hash = `#/namespaces/${name}`;
  });
  const hint = 'a-z, 0-9 and -, starting with a letter; it cannot be changed later';
  const back = isNew ? 'namespaces' : `namespaces/${namespace.name}`;
  return html`<${Heading} title=${isNew ? 'New namespace' : `Change ${namespace.name}`} />
    <${Form} form=${form} action=${isNew ? 'Create' : 'Save'} back=${back}>
      ${isNew && html`<${Field} label="Name" maxlength="63" hint=${hint} ...${form.field('name')} />`}
      <${Field} label="Description" type="textarea" class="text" rows="3" maxlength="2000" ...${form.field('description')} />
      <${ReasonField} form=${form} />
    <//>`;
}

function save({ name, description, reason }, etag) {
  const about = { description: description.trim() || null };
  if (etag === undefined) {
    return command('namespaces', { body: { name: name.trim(), ...about }, reason: reason.trim() });
  }
  const headers = { 'If-Match': etag, ...reasonHeader(reason.trim()) };
  return call('PUT', `namespaces/${name}`, { body: about, headers });
}
