// Secrets: where each may be used, until when, and when it was used last. Never their values.

import { html } from '../../preact.js';
import { call, may, reasonHeader } from '../../client.js';
import { learnTitles } from '../../names.js';
import { useStore } from '../../store.js';
import { AskButton } from '../../ui/dialog.js';
import { Expiry } from '../../ui/expiry.js';
import { Nothing, State } from '../../ui/elements.js';
import { Heading } from '../../ui/layout.js';
import { List, useList } from '../../ui/list.js';
import { RunLink, TaskLink, When } from '../../ui/names.js';
import { EXPIRY_WARNING_MS, addressOf } from './secret-address.js';

const PAGE = 50;
const EVERYWHERE = '*';

export const mayWriteSecrets = () => may('secrets:write') || may('namespace:admin');

async function readSecrets(query, signal) {
  const page = await call('GET', 'secrets', { query: { ...query, limit: PAGE }, signal });
  const tasks = page.items.flatMap(({ allow_tasks: allowed, last_used: used }) => [
    ...(allowed ?? []),
    ...(used?.task_id ? [used.task_id] : []),
  ]);
  await learnTitles(tasks, signal);
  // Names are unique within a namespace.
  return { ...page, items: page.items.map((each) => ({ ...each, key: addressOf(each) })) };
}

export function SecretsView() {
  const list = useList('secrets', {}, readSecrets);
  const hasSeveral = useStore(
    ({ namespaces, namespace }) => namespaces.length > 1 && namespace === '',
  );
  const empty = html`<${Nothing} text="No secrets.">
    A secret is a token or password that steps use and that nobody reads: ${'${secrets.NAME}'} in a pipeline.
    Secrets from files, environment variables and Vault are not listed.
  <//>`;
  return html`<${Heading} title="Secrets">
      ${may('audit:read') && html`<a class="button" href="#/audit?type=SecretUsed">Uses</a>`}
      ${may('admin') && html`<${RotateButton} />`}
      ${mayWriteSecrets() && html`<a class="button main-action" href="#/secrets/new">New secret</a>`}
    <//>
    <${List} list=${list} caption="Secrets" columns=${columnsOf(hasSeveral, list.reload)} one="secret"
      rowKey="key" empty=${empty} />`;
}

const columnsOf = (hasSeveral, done) => [
  ['Name', (secret) => html`<a class="name" href="#/${addressOf(secret)}">${secret.name}</a>`],
  hasSeveral && ['Namespace', 'namespace'],
  ['Version', 'version', 'num'],
  ['Sent to', ({ allow_hosts: hosts }) => html`<${Hosts} of=${hosts} />`],
  ['Used by', ({ allow_tasks: tasks }) => html`<${Tasks} of=${tasks} />`, 'minor'],
  ['Expires', ({ expires_at: at }) => html`<${Expiry} at=${at} soon=${EXPIRY_WARNING_MS} />`],
  ['Last use', ({ last_used: use }) => html`<${LastUse} of=${use} />`],
  ['Changed', ({ updated_at: at }) => html`<${When} at=${at} />`, 'minor'],
  [
    'Actions',
    (secret) =>
      mayWriteSecrets() &&
      html`<div class="row">
        <a class="button small" href="#/${addressOf(secret)}" aria-label="Replace ${secret.name}">Replace</a>
        <${DeleteButton} secret=${secret} done=${done} />
      </div>`,
    'num',
  ],
];

/** A secret without an allowed host is useless, so this state has a colour. */
function Hosts({ of }) {
  if (of.length === 0) return html`<${State} of="nowhere" tone="wait" />`;
  if (of.includes(EVERYWHERE)) return 'everywhere';
  return of.map((host) => html`<code>${host}</code> `);
}

function Tasks({ of }) {
  if (of === null) return 'all tasks';
  if (of.length === 0) return 'no task';
  return html`<ul class="plain">${of.map((id) => html`<li key=${id}><${TaskLink} id=${id} /></li>`)}</ul>`;
}

function LastUse({ of }) {
  if (of === null) return html`<span class="soft">never</span>`;
  const { at, task_id: task, run_id: run, version } = of;
  return html`<${When} at=${at} />
    <p class="hint">
      ${task !== null && html`<${TaskLink} id=${task} /> `}
      ${run !== null && html`<${RunLink} id=${run} prefix="run " />`}
      ${version !== null && ` version ${version}`}
    </p>`;
}

function DeleteButton({ secret: { name, namespace }, done }) {
  const dialog = {
    title: `Delete ${name}?`,
    text: 'Steps that use it will fail. Its value cannot be restored.',
    act: ({ reason }) =>
      call('DELETE', `secrets/${encodeURIComponent(name)}`, {
        query: { namespace },
        headers: reasonHeader(reason),
      }),
    done: `${name} is deleted.`,
  };
  return html`<${AskButton} text="Delete" kind="danger small" label="Delete ${name}" dialog=${dialog}
    done=${done} />`;
}

function RotateButton() {
  const dialog = {
    title: 'Rotate the key?',
    text: 'Encrypts all secrets again: with a new key if the service generates its keys, otherwise with the present one. They stay usable.',
    action: 'Rotate',
    act: async ({ reason }) => {
      const { unopened } = await call('POST', 'secrets/rotate-key', {
        headers: reasonHeader(reason),
      });
      if (unopened.length > 0)
        throw new Error(`No key decrypts ${unopened.join(', ')}. Set them again.`);
    },
    done: 'All secrets are now encrypted with the present key.',
  };
  return html`<${AskButton} text="Rotate the key …" dialog=${dialog} />`;
}
