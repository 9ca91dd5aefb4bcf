// What the search finds: tasks, runs and agents through the API, and what this page can do.

import { call, may, signOut } from '../client.js';
import { learnTitle, learnTitles, titleOf } from '../names.js';
import { prefer } from '../preferences.js';
import { visibleGroups } from '../routes.js';
import { attempt, getState, setState } from '../store.js';
import { ago } from '../times.js';
import { askToHold, askToRelease } from '../views/overview/banners.js';

/** Results of each kind. */
const MAX_TASKS = 6;
const MAX_RUNS = 4;
const MAX_AGENTS = 4;
/** The beginning of an id: at least as long as the page shows of a run's. */
const ID = /^[0-9a-f]{8}[0-9a-f-]{0,28}$/i;

/**
 * Searches the service.
 * @param {string} asked what was typed, trimmed
 * @returns groups `{name, items}` of items `{key, text, more, to}`
 */
export async function findThings(asked, signal) {
  if (asked === '') return [];
  const [tasks, agents] = await Promise.all([findTasks(asked, signal), findAgents(asked, signal)]);
  const runs = await findRuns(asked, tasks, signal);
  return [
    { name: 'Tasks', items: tasks.map(taskItem) },
    { name: 'Runs', items: runs.map(runItem) },
    { name: 'Agents', items: agents.map(agentItem) },
  ];
}

async function findTasks(search, signal) {
  if (!may('tasks:read')) return [];
  const { items } = await call('GET', 'tasks', { query: { search, limit: MAX_TASKS }, signal });
  items.forEach(learnTitle);
  return items;
}

/** The runs whose ids begin so, or else the latest of the first task that was found. */
async function findRuns(asked, [task], signal) {
  if (!may('runs:read')) return [];
  const isId = ID.test(asked);
  if (!isId && task === undefined) return [];
  const wanted = isId ? { id: asked } : { task_id: task.id };
  const query = { ...wanted, limit: MAX_RUNS, include_errors: false };
  const { items } = await call('GET', 'runs', { query, signal });
  await learnTitles(
    items.map(({ task_id: id }) => id),
    signal,
  );
  return items;
}

async function findAgents(name, signal) {
  if (!['namespace:admin', 'audit:read'].some(may)) return [];
  return call('GET', 'agents', { query: { name_filter: name, limit: MAX_AGENTS }, signal });
}

const taskItem = ({ id, title, status, schedule_text: words }) => ({
  key: id,
  text: title,
  more: status === 'active' ? words : status,
  to: `tasks/${id}`,
});

const runItem = ({ id, task_id: task, state, run_at: at }) => ({
  key: id,
  text: `${id.slice(0, 8)} of ${titleOf(task)}`,
  more: `${state}, ${ago(at)}`,
  to: `runs/${id}`,
});

const agentItem = ({ id, name, scopes }) => ({
  key: id,
  text: name,
  more: scopes.join(' '),
  to: `agents/${id}`,
});

const setting = (name, value, text) => ({ text, act: () => prefer(name, value) });

/** What the agent may do from everywhere. */
function actions() {
  const { hold } = getState();
  return [
    may('tasks:write') && { text: 'New task', to: 'tasks/new' },
    may('ops') && hold === null && { text: 'Hold the service …', act: askToHold },
    may('ops') && hold !== null && { text: 'Release the service …', act: askToRelease },
    setting('theme', 'light', 'Light colours'),
    setting('theme', 'dark', 'Dark colours'),
    setting('theme', 'system', 'Colours of the system'),
    setting('zone', 'mine', 'Times in my zone'),
    setting('zone', 'task', 'Times in the task’s zone'),
    setting('zone', 'utc', 'Times in UTC'),
    { text: 'Show the keys', act: () => setState({ panel: 'keys' }) },
    { text: 'Log out', act: () => attempt(signOut) },
  ].filter(Boolean);
}

/** The views and actions whose names contain all the words, in groups as {@link findThings} has them. */
export function findActions(asked) {
  const words = asked.toLowerCase().split(/\s+/);
  const matches = ({ text }) => words.every((word) => text.toLowerCase().includes(word));
  const views = visibleGroups()
    .flat()
    .map(([to, text]) => ({ text, to }));
  const withKey = (item) => ({ ...item, key: item.text });
  return [
    { name: 'Views', items: views.filter(matches).map(withKey) },
    { name: 'Actions', items: actions().filter(matches).map(withKey) },
  ];
}
