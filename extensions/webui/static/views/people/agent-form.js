// Registers an agent, or changes one.

import { html } from '../../preact.js';
import { call, callFully, command, may, reasonHeader } from '../../client.js';
import { useData } from '../../data.js';
import { learnAgent } from '../../names.js';
import { notify, useStore } from '../../store.js';
import { Field } from '../../ui/field.js';
import { Form, ReasonField, useForm } from '../../ui/form.js';
import { Heading, LoadedView } from '../../ui/layout.js';
import { ScopeChoice, knownScopes } from '../../ui/scope-choice.js';

export function AgentForm({ id }) {
  const read = (signal) =>
    id === undefined ? { body: null } : callFully('GET', `agents/${id}`, { signal });
  const agent = useData(read, []);
  return html`<${LoadedView} of=${agent}>
    ${({ body, headers }) => html`<${Fields} agent=${body} etag=${headers?.get('etag')} />`}
  <//>`;
}

/** Scopes that mean nothing to the service itself, but may to extensions. */
const othersOf = (scopes) => scopes.filter((each) => !knownScopes.includes(each));

function Fields({ agent, etag }) {
  const namespaces = useStore((state) => state.namespaces);
  const chosen = useStore((state) => state.namespace);
  const initial = {
    name: agent?.name ?? '',
    namespace: chosen,
    scopes: agent?.scopes.filter((each) => knownScopes.includes(each)) ?? [],
    others: othersOf(agent?.scopes ?? []).join(' '),
    webhook_url: agent?.webhook_url ?? '',
    reason: '',
  };
  const form = useForm(initial, async (values) => {
    const { id, name } = await save(agent, etag, values);
    learnAgent(id, name);
    notify(agent === null ? `${name} was added.` : `${name} was saved.`);
    location.hash = `#/agents/${id}`;
  });
  // Only an admin makes admins.
  const offered = knownScopes.filter(
    (each) => each !== 'admin' || may('admin') || form.values.scopes.includes('admin'),
  );
  const back = agent === null ? 'agents' : `agents/${agent.id}`;
  const isChoosing = agent === null && namespaces.length > 1;
  const options = Object.fromEntries([
    ['', 'that of your agent'],
    ...namespaces.map((each) => [each, each]),
  ]);
  return html`<${Heading} title=${agent === null ? 'New agent' : `Change ${agent.name}`} />
    <${Form} form=${form} action=${agent === null ? 'Add' : 'Save'} back=${back}>
      <${Field} label="Name" maxlength="100" ...${form.field('name')} />
      ${isChoosing && html`<${Field} label="Namespace (permanent)" options=${options} ...${form.field('namespace')} />`}
      <${ScopeChoice} label="Scopes" offered=${offered} chosen=${form.values.scopes}
        onChange=${(scopes) => form.set('scopes', scopes)} fault=${form.faults.scopes}
        hint="Without a scope, an agent sees only itself." />
      <${Field} label="Other scopes" hint="for extensions, separated by spaces" ...${form.field('others')} />
      <${Field} label="Webhook" type="url" placeholder="an https address"
        hint="receives messages about the runs of its tasks; may contain $\{secrets.NAME} after the host"
        ...${form.field('webhook_url')} />
      ${agent !== null && html`<${ReasonField} form=${form} />`}
    <//>`;
}

/** @returns the agent after the change */
function save(agent, etag, values) {
  const others = values.others.split(/\s+/).filter((each) => each !== '');
  const body = {
    name: values.name.trim(),
    scopes: [...values.scopes, ...others],
    webhook_url: values.webhook_url.trim() || null,
  };
  if (agent !== null) {
    const headers = { 'If-Match': etag, ...reasonHeader(values.reason.trim()) };
    return call('PUT', `agents/${agent.id}`, { body, headers });
  }
  const { namespace } = values;
  return command('agents', { body: namespace === '' ? body : { ...body, namespace } });
}
