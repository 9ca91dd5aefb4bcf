// The list of namespaces. An agent of one namespace sees its own.

import { html } from '../../preact.js';
import { call, may, ownNamespace } from '../../client.js';
import { Heading } from '../../ui/layout.js';
import { List, useList } from '../../ui/list.js';
import { When } from '../../ui/names.js';
import { NamespaceView } from './namespace.js';

const PAGE = 100;

export const NamespacesView = () =>
  may('admin') ? html`<${AllNamespaces} />` : html`<${NamespaceView} name=${ownNamespace()} />`;

const read = (query, signal) =>
  call('GET', 'namespaces', { query: { ...query, limit: PAGE }, signal });

const columns = [
  ['Name', ({ name }) => html`<a class="name" href="#/namespaces/${name}">${name}</a>`],
  ['Description', 'description', 'grow'],
  [
    'Created',
    ({ created_at: at }) => (at === null ? 'from the start' : html`<${When} at=${at} />`),
  ],
];

function AllNamespaces() {
  const list = useList('namespaces', {}, read);
  return html`<${Heading} title="Namespaces">
      <a class="button main-action" href="#/namespaces/new">New namespace</a>
    <//>
    <${List} list=${list} caption="Namespaces" columns=${columns} one="namespace" rowKey="name" />`;
}
