// The frame: who is logged in, and which view is shown.

import { may, signIn, signOut, who, whenSignedOut } from './client.js';
import { button, h, notify, put } from './dom.js';
import { overviewView } from './overview-view.js';
import { projectionsView } from './projections-view.js';
import { runView } from './run-view.js';
import { runsView } from './runs-view.js';
import { streamView, streamsView } from './streams-view.js';
import { taskForm } from './task-form.js';
import { taskView } from './task-view.js';
import { tasksView } from './tasks-view.js';

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
];

const entries = [
  ['overview', 'Overview', 'runs:read'],
  ['tasks', 'Tasks', 'tasks:read'],
  ['runs', 'Runs', 'runs:read'],
  ['streams', 'Streams', 'audit:read'],
  ['projections', 'Projections', 'ops'],
];

let leaving = new AbortController();

async function show() {
  leaving.abort();
  leaving = new AbortController();
  const { signal } = leaving;
  if (who() === null) {
    showSignIn();
    return;
  }
  const [path, query = ''] = location.hash.replace(/^#\/?/, '').split('?');
  const found = find(path) ?? find(entries.find(([, , scope]) => may(scope))?.[0] ?? 'tasks');
  showFrame(path);
  const place = h('div');
  put(content, place);
  try {
    await found.view(place, { ...found.parameters, query: new URLSearchParams(query), signal });
  } catch (error) {
    if (signal.aborted) return;
    put(place, h('h1', {}, 'That did not work'), h('p', { role: 'alert' }, error.message));
  }
  if (signal.aborted) return;
  const title = content.querySelector('h1')?.textContent;
  document.title = title ? `${title} – Task scheduling` : 'Task scheduling';
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
  const offered = entries.filter(([, , scope]) => may(scope));
  put(
    nav,
    offered.map(([to, text]) => {
      const current = path.split('/')[0] === to ? 'page' : null;
      return h('a', { href: `#/${to}`, 'aria-current': current }, text);
    }),
  );
  const { agentId } = who();
  put(
    document.getElementById('who'),
    h('span', { title: agentId }, `agent ${agentId.slice(-6)}`),
    button('Log out', () => signOut().catch((error) => notify(error.message))),
  );
}

function showSignIn() {
  nav.hidden = true;
  put(document.getElementById('who'));
  document.title = 'Log in – Task scheduling';
  const fault = h('p.fault', { role: 'alert', id: 'sign-in-fault' });
  const id = h('input', {
    name: 'agent_id',
    autocomplete: 'username',
    required: true,
    spellcheck: 'false',
  });
  const secret = h('input', {
    name: 'agent_secret',
    type: 'password',
    autocomplete: 'current-password',
  });
  const submit = h('button.main-action', { type: 'submit' }, 'Log in');
  const form = h(
    'form.card',
    {
      async onsubmit(event) {
        event.preventDefault();
        submit.disabled = true;
        fault.textContent = '';
        try {
          await signIn(id.value.trim(), secret.value);
          await show();
        } catch (error) {
          fault.textContent = error.message;
        } finally {
          submit.disabled = false;
        }
      },
    },
    h('h1', {}, 'Log in'),
    h('label.field', {}, "The agent's id", id),
    h('label.field', {}, 'Its secret', secret),
    fault,
    submit,
    h('p.hint', {}, 'The token stays in the memory of this page: it is gone when you close it.'),
  );
  put(content, h('div.narrow', {}, form));
  id.focus();
}

document.getElementById('skip').addEventListener('click', (event) => {
  event.preventDefault();
  content.focus();
});
whenSignedOut(() => void show());
addEventListener('hashchange', () => void show());
void show();
