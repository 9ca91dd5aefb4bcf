// Creates an API key, and shows it once.

import { html, useState } from '../../preact.js';
import { agentId, call, reasonHeader } from '../../client.js';
import { useData } from '../../data.js';
import { LifetimeFields, expiryOf, lifetimeOf } from '../../ui/expiry.js';
import { Field } from '../../ui/field.js';
import { Form, ReasonField, useForm } from '../../ui/form.js';
import { Heading, LoadedView } from '../../ui/layout.js';
import { ScopeChoice } from '../../ui/scope-choice.js';
import { ShownOnce } from '../../ui/shown-once.js';

/** Days. */
const USUAL_LIFETIME = 90;

export function KeyForm({ id }) {
  const agent = useData((signal) => call('GET', `agents/${id}`, { signal }), []);
  return html`<${LoadedView} of=${agent}>${(each) => html`<${Fields} agent=${each} />`}<//>`;
}

function Fields({ agent }) {
  const { id, name, scopes } = agent;
  const [created, setCreated] = useState(null);
  const initial = { name: '', scopes, ...lifetimeOf(USUAL_LIFETIME), reason: '' };
  // The request carries no Idempotency-Key, because the service would store the response with the key.
  const form = useForm(initial, async (values) => {
    const body = { name: values.name.trim(), scopes: values.scopes, expires_at: expiryOf(values) };
    const headers = reasonHeader(values.reason.trim());
    setCreated(await call('POST', `agents/${id}/keys`, { body, headers }));
  });
  const back = `agents/${id}`;
  const leave = () => {
    location.hash = `#/${back}`;
  };
  const heading = html`<${Heading} title="New API key of ${name}" />`;
  if (created !== null) {
    return html`${heading}
      <${ShownOnce} label="The key ${created.name}." value=${created.key} done=${leave} />`;
  }
  const hint = id === agentId() ? 'among your own' : `among those of ${name}`;
  return html`${heading}
    <${Form} form=${form} action="Create" back=${back}>
      <${Field} label="Name" maxlength="100" hint="says where it is used" ...${form.field('name')} />
      <${ScopeChoice} label="Scopes" offered=${scopes} chosen=${form.values.scopes} hint=${hint}
        onChange=${(chosen) => form.set('scopes', chosen)} fault=${form.faults.scopes} />
      <${LifetimeFields} form=${form} />
      <${ReasonField} form=${form} />
    <//>`;
}
