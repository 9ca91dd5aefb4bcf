// The frame of the page: who is logged in, and which view is shown.

import { html, options, render, useErrorBoundary, useLayoutEffect, useRef } from './preact.js';
import { pause, resume, signOut } from './client.js';
import { chooseNamespace } from './namespaces.js';
import { findRoute, visibleViews } from './routes.js';
import { learnAgents } from './names.js';
import { attempt, getState, setState, useStore } from './store.js';
import { Dialog } from './ui/dialog.js';
import { Button } from './ui/elements.js';
import { Failure, Heading } from './ui/layout.js';
import { Actor } from './ui/names.js';
import { AgentView } from './views/people/agent.js';
import { AgentsView } from './views/people/agents.js';
import { ApprovalsView } from './views/approvals/approvals.js';
import { AuditView } from './views/audit/audit.js';
import { Banners } from './views/overview/banners.js';
import { OverviewView } from './views/overview/overview.js';
import { ProjectionsView } from './views/system/projections.js';
import { RunView } from './views/runs/run.js';
import { RunsView } from './views/runs/runs.js';
import { SignIn } from './views/people/sign-in.js';
import { StreamView } from './views/system/stream.js';
import { StreamsView } from './views/system/streams.js';
import { TaskForm } from './views/tasks/task-form.js';
import { TaskView } from './views/tasks/task.js';
import { TasksView } from './views/tasks/tasks.js';
import { WorkersView } from './views/workers/workers.js';

/** Patterns of addresses. `:id` becomes a property of the view. */
const routes = [
  ['overview', OverviewView],
  ['tasks', TasksView],
  ['tasks/new', TaskForm],
  ['tasks/:id', TaskView],
  ['tasks/:id/edit', TaskForm],
  ['runs', RunsView],
  ['runs/:id', RunView],
  ['approvals', ApprovalsView],
  ['workers', WorkersView],
  ['streams', StreamsView],
  ['streams/:id', StreamView],
  ['projections', ProjectionsView],
  ['audit', AuditView],
  ['agents', AgentsView],
  ['agents/:id', AgentView],
];

function Page() {
  const isLoggedIn = useStore(({ agent }) => agent !== null);
  const isKnown = useStore((state) => state.isKnown);
  const { path: given, query, visit } = useStore(({ address }) => address);
  const namespace = useStore((state) => state.namespace);
  const dialog = useStore((state) => state.dialog);
  const notice = useStore((state) => state.notice);
  const content = useRef();
  const path = given || (visibleViews()[0] ?? '');
  const skip = (event) => {
    event.preventDefault();
    content.current.focus();
  };
  return html`<a class="skip" href="#content" onClick=${skip}>Skip to the content</a>
    <header class="top">
      <span class="brand">Task scheduling</span>
      ${isLoggedIn && html`<${Navigation} current=${path.split('/')[0]} /><${Account} />`}
    </header>
    <${Banners} />
    <main id="content" tabindex="-1" ref=${content}>
      ${isLoggedIn && html`<${View} key=${`${visit} ${namespace}`} path=${path} query=${query} />`}
      ${isKnown && !isLoggedIn && html`<${SignIn} />`}
    </main>
    <div id="notice" role="status" aria-live="polite">${notice}</div>
    ${dialog && html`<${Dialog} ...${dialog} />`}`;
}

function Navigation({ current }) {
  const nav = useRef();
  useLayoutEffect(() => {
    const link = nav.current.querySelector('[aria-current]');
    link?.scrollIntoView?.({ block: 'nearest', inline: 'nearest' });
  }, [current]);
  return html`<nav aria-label="Views" ref=${nav}>
    ${visibleViews().map(
      (view) => html`<a href="#/${view}" aria-current=${view === current ? 'page' : null}>
        ${view[0].toUpperCase() + view.slice(1)}
      </a>`,
    )}
  </nav>`;
}

function Account() {
  const { agentId } = useStore(({ agent }) => agent);
  const isExact = useStore((state) => state.isExact);
  return html`<div class="account">
    <${NamespaceSwitch} />
    <button class="quiet" type="button" aria-pressed=${isExact} title="Show dates instead of distances"
      onClick=${() => setState({ isExact: !isExact })}>Exact times</button>
    <span class="soft"><${Actor} id=${agentId} /></span>
    <${Button} kind="quiet" onClick=${() => attempt(signOut)}>Log out<//>
  </div>`;
}

/** For admins of a service with several. */
function NamespaceSwitch() {
  const names = useStore(({ namespaces }) => namespaces);
  const chosen = useStore(({ namespace }) => namespace);
  if (names.length === 0) return null;
  return html`<select aria-label="Namespace" value=${chosen}
    onChange=${(event) => chooseNamespace(event.target.value)}>
    <option value="">All namespaces</option>
    ${names.map((name) => html`<option value=${name}>${name}</option>`)}
  </select>`;
}

function View({ path, query }) {
  const route = findRoute(routes, path);
  // At once: keyboard users may move on while the view loads.
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

/** Finds out who is logged in, and tries again for as long as the service does not say. */
async function begin() {
  for (let wait = 500; ; wait = Math.min(8000, wait * 2)) {
    try {
      await resume();
      break;
    } catch {
      // The page shows that the service does not respond.
      await pause(wait);
    }
  }
  if (getState().agent !== null) await attempt(learnAgents);
}

/** Reads the address. Each navigation mounts its view again. */
let visits = 0;
function navigate() {
  const [path, query = ''] = location.hash.replace(/^#\/?/, '').split('?');
  visits += 1;
  setState({ address: { path: path.replace(/\/$/, ''), query, visit: visits }, dialog: null });
}

/**
 * While a button or a link is held down, nothing is redrawn: if it moved or went away, releasing it would be no click.
 */
function drawAfterPress() {
  let isPressed = false;
  let draw = null;
  const release = () => {
    isPressed = false;
    // The click comes right after.
    const pending = draw;
    draw = null;
    if (pending !== null) setTimeout(() => pending());
  };
  const press = ({ button, isPrimary, target }) => {
    isPressed = button === 0 && isPrimary && target.closest('a, button, summary') !== null;
  };
  addEventListener('pointerdown', press, true);
  for (const each of ['pointerup', 'pointercancel']) addEventListener(each, release, true);
  addEventListener('blur', release);
  options.debounceRendering = (redraw) => {
    if (isPressed) draw = redraw;
    else queueMicrotask(redraw);
  };
}

drawAfterPress();
addEventListener('hashchange', navigate);
// Relative times go on.
setInterval(() => {
  if (!document.hidden) setState();
}, 1000);
navigate();
void begin();
render(html`<${Page} />`, document.body);
