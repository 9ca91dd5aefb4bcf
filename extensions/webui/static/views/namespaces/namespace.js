// One namespace: its use of its quotas, and the actions of an administrator.

import { html } from '../../preact.js';
import { call, command, may, ownNamespace } from '../../client.js';
import { useData } from '../../data.js';
import { chooseNamespace, findNamespaces } from '../../namespaces.js';
import { useStore } from '../../store.js';
import { AskButton } from '../../ui/dialog.js';
import { Button } from '../../ui/elements.js';
import { Facts, Heading, LoadedView, Section } from '../../ui/layout.js';
import { InstantAndDistance, StreamLink } from '../../ui/names.js';
import { Usage } from './usage.js';

const DEFAULT = 'default';

const mayAdminister = (name) => may('admin') || (may('namespace:admin') && name === ownNamespace());

export function NamespaceView({ name }) {
  const isAdministered = mayAdminister(name);
  const found = useData(
    (signal) =>
      isAdministered ? call('GET', `namespaces/${encodeURIComponent(name)}`, { signal }) : { name },
    [],
  );
  return html`<${LoadedView} of=${found}>
    ${(body) => html`<${Heading} title="Namespace ${name}">
        ${isAdministered && html`<${Actions} ...${body} />`}
      <//>
      ${isAdministered && html`<${Section} title="Facts"><${About} ...${body} /><//>`}
      <${Usage} name=${name} />`}
  <//>`;
}

const About = ({ name, description, created_at: created, updated_at: updated }) =>
  html`<${Facts} of=${[
    ['Description', description ?? 'none'],
    [
      'Created',
      created === null ? 'from the start' : html`<${InstantAndDistance} at=${created} />`,
    ],
    updated && ['Changed', html`<${InstantAndDistance} at=${updated} />`],
    may('audit:read') &&
      created !== null && [
        'Stream',
        html`<${StreamLink} stream="namespace-${name}">Step through its events<//>`,
      ],
  ]} />`;

function Actions({ name, quota_bounds: bounds }) {
  const chosen = useStore((state) => state.namespace);
  const hasSeveral = useStore(({ namespaces }) => namespaces.length > 1);
  const isChosen = chosen === name;
  const remove = {
    title: `Delete the namespace ${name}?`,
    text: 'It must have no agents, live tasks or secrets. Its records stay, and its name cannot be used again.',
    act: async ({ reason }) => {
      await command(`namespaces/${name}`, { method: 'DELETE', reason });
      if (isChosen) chooseNamespace('');
      await findNamespaces((path, query) => call('GET', path, { query }));
      location.hash = '#/namespaces';
    },
    done: `The namespace ${name} is deleted.`,
  };
  return html`<a class="button" href="#/namespaces/${name}/edit">Change</a>
    ${bounds && html`<a class="button" href="#/namespaces/${name}/quotas">Set quotas</a>`}
    ${
      may('admin') &&
      hasSeveral &&
      html`<${Button} onClick=${() => chooseNamespace(isChosen ? '' : name)}>
        ${isChosen ? 'Show all namespaces' : 'Show only this namespace'}
      <//>`
    }
    ${
      may('admin') &&
      name !== DEFAULT &&
      html`<${AskButton} text="Delete …" kind="danger" dialog=${remove} />`
    }`;
}
