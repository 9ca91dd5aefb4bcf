// The frame: who is logged in, and which view is shown.

import { agentsView, agentView } from './agents-view.js';
import { auditView } from './audit-view.js';
import { look, startBanners } from './banners.js';
import { signOut, who, whenSignedOut } from './client.js';
import { button, failure, h, notify, put } from './dom.js';
import { actor, forgetAgents, learnAgents, maySee, views } from './names.js';
import { overviewView } from './overview-view.js';
import { projectionsView } from './projections-view.js';
import { runView } from './run-view.js';
import { runsView } from './runs-view.js';
import { showSignIn } from './sign-in.js';
import { streamView } from './stream-view.js';
import { streamsView } from './streams-view.js';
import { taskForm } from './task-form.js';
import { taskView } from './task-view.js';
import { tasksView } from './tasks-view.js';
import { toggleExact } from './times.js';

const content = document.getElementById('content');
const nav = document.getElementById('views');

/** Patterns of addresses; `:id` is handed to the view. */
const routes = [
  ['overview', overviewView],
  ['tasks', tasksView],
  ['tasks/new', taskForm],
  ['tasks/:id', taskView],
  ['tasks/:id/edit', taskForm],
  ['runs', runsView],
  ['runs/:id', runView],
  ['streams', streamsView],
  ['streams/:id', streamView],
  ['projections', projectionsView],
  ['audit', auditView],
  ['agents', agentsView],
  ['agents/:id', agentView],
];

/** The views that are offered to who is logged in, the first of which is shown where the address names none. */
const offered = () => Object.keys(views).filter(maySee);
const titleOf = (view) => view[0].toUpperCase() + view.slice(1);

let leaving = new AbortController();

async function show() {
  leaving.abort();
  leaving = new AbortController();
  const { signal } = leaving;
  for (const dialog of document.querySelectorAll('dialog')) dialog.remove();
  const [given, query = ''] = location.hash.replace(/^#\/?/, '').split('?');
  const [first = ''] = offered();
  const path = given.replace(/\/$/, '') || first;
  const found = find(path);
  showFrame(path);
  if (found === null) {
    showNothing(path);
    return;
  }
  const place = h('div');
  put(content, place);
  // At once: whoever goes on by keyboard while it loads is not brought back.
  content.focus({ preventScroll: true });
  try {
    await found.view(place, { ...found.parameters, query: new URLSearchParams(query), signal });
  } catch (error) {
    if (signal.aborted) return;
    const what = error.status === 404 ? 'There is no such thing' : 'That did not work';
    put(place, h('h1', {}, what), failure(error, show));
  }
  if (signal.aborted) return;
  nameTab();
  if (document.activeElement === document.body) content.focus({ preventScroll: true });
}

function nameTab() {
  const title = content.querySelector('h1')?.textContent;
  document.title = title ? `${title} – Task scheduling` : 'Task scheduling';
}

/** @param path an address without a view, or `''`: no view is offered */
function showNothing(path) {
  const why =
    path === ''
      ? [h('h1', {}, 'Nothing to see'), h('p', {}, 'This agent may read nothing.')]
      : [
          h('h1', {}, 'There is no such view'),
          h('p', {}, 'The page has none at the address ', h('code', {}, `#/${path}`), '.'),
        ];
  put(content, why);
  nameTab();
  content.focus({ preventScroll: true });
}

function find(path) {
  const parts = path.split('/');
  for (const [pattern, view] of routes) {
    const wanted = pattern.split('/');
    if (wanted.length !== parts.length) continue;
    const parameters = {};
    const fits = wanted.every((each, n) => {
      if (!each.startsWith(':')) return each === parts[n];
      parameters[each.slice(1)] = decoded(parts[n]);
      return parts[n] !== '';
    });
    if (fits) return { view, parameters };
  }
  return null;
}

/** What was typed by hand may be no encoding: then it is taken as it is. */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function showFrame(path) {
  nav.hidden = false;
  const [current] = path.split('/');
  put(
    nav,
    offered().map((to) =>
      h('a', { href: `#/${to}`, 'aria-current': to === current ? 'page' : null }, titleOf(to)),
    ),
  );
  nav.querySelector('[aria-current]')?.scrollIntoView?.({ block: 'nearest', inline: 'nearest' });
}

function showWho() {
  const { agentId } = who();
  const exact = h(
    'button.quiet',
    {
      ...{ type: 'button', 'aria-pressed': 'false', title: 'Times as dates, and not how long ago' },
      onclick() {
        exact.setAttribute('aria-pressed', String(toggleExact()));
      },
    },
    'Exact times',
  );
  put(
    document.getElementById('who'),
    exact,
    h('span.soft', {}, actor(agentId)),
    button('Log out', () => signOut().catch((error) => notify(error.message)), '.quiet'),
  );
}

async function enter() {
  await learnAgents().catch((error) => notify(error.message));
  showWho();
  await Promise.all([show(), look()]);
}

function leave(why) {
  leaving.abort();
  forgetAgents();
  nav.hidden = true;
  put(document.getElementById('who'));
  for (const dialog of document.querySelectorAll('dialog')) dialog.remove();
  void look();
  document.title = 'Log in – Task scheduling';
  showSignIn(content, why, enter);
}

document.getElementById('skip').addEventListener('click', (event) => {
  event.preventDefault();
  content.focus();
});
whenSignedOut(leave);
addEventListener('hashchange', () => {
  if (who() !== null) void show();
});
startBanners();
leave('');
