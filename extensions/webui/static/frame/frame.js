// The frame of the page: the bar at its top, the rail at its left, and the view between.

import { html, useErrorBoundary, useLayoutEffect, useRef } from '../preact.js';
import { setAddress } from '../address.js';
import { signOut } from '../client.js';
import { chooseNamespace } from '../namespaces.js';
import { prefer } from '../preferences.js';
import { findRoute, firstView, visibleGroups } from '../routes.js';
import { attempt, getState, setState, useStore } from '../store.js';
import { ownZone, shownZone } from '../zones.js';
import { Banners } from '../views/overview/banners.js';
import { SignIn } from '../views/people/sign-in.js';
import { Dialog } from '../ui/dialog.js';
import { Button } from '../ui/elements.js';
import { KeysPanel } from './keys-panel.js';
import { Failure, Heading } from '../ui/layout.js';
import { Actor } from '../ui/names.js';
import { SearchPanel } from './search-panel.js';

/** The panels that can be open above the page. */
const panels = { search: SearchPanel, keys: KeysPanel };

export function Frame() {
  const isLoggedIn = useStore(({ agent }) => agent !== null);
  const isKnown = useStore((state) => state.isKnown);
  const { path: given, query, visit } = useStore(({ address }) => address);
  const namespace = useStore((state) => state.namespace);
  const dialog = useStore((state) => state.dialog);
  const panel = useStore((state) => state.panel);
  const notice = useStore((state) => state.notice);
  // A change of the zone redraws everything that shows a time.
  useStore(shownZone);
  const content = useRef();
  const path = given || (isLoggedIn ? firstView() : '');
  const skip = (event) => {
    event.preventDefault();
    content.current.focus();
  };
  return html`<a class="skip" href="#content" onClick=${skip}>Skip to the content</a>
    <header class="top">
      <span class="brand">Task scheduling</span>
      ${isLoggedIn && html`<${Account} />`}
    </header>
    <${Banners} />
    <div class="frame">
      ${isLoggedIn && html`<${Rail} current=${path.split('/')[0]} />`}
      <main id="content" tabindex="-1" ref=${content}>
        ${isLoggedIn && html`<${View} key=${`${visit} ${namespace}`} path=${path} query=${query} />`}
        ${isKnown && !isLoggedIn && html`<${SignIn} />`}
      </main>
    </div>
    <div id="notice" role="status" aria-live="polite">${notice}</div>
    ${isLoggedIn && panel && html`<${panels[panel]} />`}
    ${dialog && html`<${Dialog} ...${dialog} />`}`;
}

function Rail({ current }) {
  const nav = useRef();
  useLayoutEffect(() => {
    const link = nav.current.querySelector('[aria-current]');
    link?.scrollIntoView?.({ block: 'nearest', inline: 'nearest' });
  }, [current]);
  return html`<nav class="rail" aria-label="Views" ref=${nav}>
    ${visibleGroups().map(
      (views) => html`<ul>
        ${views.map(
          ([path, name]) => html`<li>
            <a href="#/${path}" aria-current=${path === current ? 'page' : null}>${name}</a>
          </li>`,
        )}
      </ul>`,
    )}
  </nav>`;
}

function Account() {
  const { agentId } = useStore(({ agent }) => agent);
  const isExact = useStore((state) => state.isExact);
  return html`<div class="account">
    <button type="button" class="small search" onClick=${() => setState({ panel: 'search' })}>
      Search <kbd>Ctrl K</kbd>
    </button>
    <${NamespaceSwitch} />
    <${ZoneSwitch} />
    <button class="quiet" type="button" aria-pressed=${isExact} title="Show dates instead of relative times"
      onClick=${() => setState({ isExact: !isExact })}>Exact times</button>
    <${ThemeSwitch} />
    <span class="soft"><${Actor} id=${agentId} /></span>
    <${Button} kind="quiet" onClick=${() => attempt(signOut)}>Log out<//>
  </div>`;
}

/** For admins of a service with several. */
function NamespaceSwitch() {
  const names = useStore(({ namespaces }) => namespaces);
  const chosen = useStore(({ namespace }) => namespace);
  if (names.length === 0) return null;
  const choose = ({ target }) => {
    toFirstPage();
    chooseNamespace(target.value);
  };
  return html`<select aria-label="Namespace" value=${chosen} onChange=${choose}>
    <option value="">All namespaces</option>
    ${names.map((name) => html`<option value=${name}>${name}</option>`)}
  </select>`;
}

/** The cursors of pages belong to the old namespace. */
function toFirstPage() {
  const { path, query } = getState().address;
  const rest = new URLSearchParams(query);
  for (const name of ['page', 'cursor']) rest.delete(name);
  setAddress(path, rest);
}

/** The zone of all times of the page, by its name. */
function ZoneSwitch() {
  const zone = useStore((state) => state.zone);
  const taskZone = useStore((state) => state.taskZone);
  const ofTask = taskZone === null ? `the task’s, else ${ownZone}` : `${taskZone} (the task’s)`;
  return html`<select aria-label="Zone of the times" class="quiet" value=${zone}
    title="All times of this page are in this zone" onChange=${({ target }) => prefer('zone', target.value)}>
    <option value="mine">${ownZone} (mine)</option>
    <option value="task">${ofTask}</option>
    <option value="utc">UTC</option>
  </select>`;
}

const themes = { system: 'System colours', light: 'Light', dark: 'Dark' };

function ThemeSwitch() {
  const theme = useStore((state) => state.theme);
  return html`<select aria-label="Colours" class="quiet" value=${theme}
    onChange=${({ target }) => prefer('theme', target.value)}>
    ${Object.entries(themes).map(([key, text]) => html`<option value=${key}>${text}</option>`)}
  </select>`;
}

function View({ path, query }) {
  const route = findRoute(path);
  // Set at once, as keyboard users may move on while the view loads.
  useLayoutEffect(() => document.getElementById('content').focus({ preventScroll: true }), []);
  const [error, retry] = useErrorBoundary();
  if (error !== undefined) {
    return html`<${Heading} title="Could not show this page" /><${Failure} error=${error} retry=${retry} />`;
  }
  if (route !== null) {
    const parameters = { ...route.parameters, query: new URLSearchParams(query) };
    return html`<${route.component} ...${parameters} />`;
  }
  return path === ''
    ? html`<${Heading} title="Nothing to see" /><p>This agent may not read anything.</p>`
    : html`<${Heading} title="Page not found" />
        <p>There is no page at the address <code>#/${path}</code>.</p>`;
}
