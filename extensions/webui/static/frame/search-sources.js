// The results of the search: tasks, runs, errors, agents and owners through the API, and this page's views and actions.

import { call, may, signOut } from '../client.js';
import { learnErrors, learnTitle, learnTitles, titleOf } from '../names.js';
import { prefer } from '../preferences.js';
import { visibleGroups } from '../routes.js';
import { attempt, getState, setState } from '../store.js';
import { ago, counted } from '../times.js';
import { askToHold, askToRelease } from '../views/overview/banners.js';

/** The most results of each kind. */
const MAX_TASKS = 6;
const MAX_RUNS = 4;
const MAX_AGENTS = 4;
const MAX_ERRORS = 4;
/** The most errors of the last 24 hours that are searched. */
const READ_ERRORS = 200;
/** The start of an id, at least as long as the page shows for a run. */
const ID = /^[0-9a-f]{8}[0-9a-f-]{0,28}$/i;

/**
 * Searches the service.
 * @param {string} asked the typed text, trimmed
 * @returns groups `{name, items}` of items `{key, text, more, to}`
 */
export async function findThings(asked, signal) {
  if (asked === '') return [];
  const [tasks, agents, errors] = await Promise.all([
    findTasks(asked, signal),
    findAgents(asked, signal),
    findErrors(asked, signal),
  ]);
  const runs = await findRuns(asked, tasks, signal);
  return [
    { name: 'Tasks', items: tasks.map(taskItem) },
    { name: 'Runs', items: runs.map(runItem) },
    { name: 'Errors', items: errors.map(errorItem) },
    { name: 'Agents', items: agents.map(agentItem) },
    { name: 'Owners', items: may('tasks:read') ? agents.map(ownerItem) : [] },
  ];
}

async function findTasks(search, signal) {
  if (!may('tasks:read')) return [];
  const { items } = await call('GET', 'tasks', { query: { search, limit: MAX_TASKS }, signal });
  items.forEach(learnTitle);
  return items;
}

/** The runs whose ids start with the typed text, or otherwise the latest runs of the first task found. */
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

/** Errors of the last 24 hours that contain all the words. They come from the statistics, without reading runs. */
async function findErrors(asked, signal) {
  if (!may('runs:read')) return [];
  const query = { hours: 24, limit: READ_ERRORS };
  const { items } = await call('GET', 'stats/errors', { query, signal });
  const found = items.filter(({ error }) => hasWords(error, asked)).slice(0, MAX_ERRORS);
  learnErrors(found);
  return found;
}

const hasWords = (text, asked) =>
  asked
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.toLowerCase().includes(word));

/** The text searches of the list of runs: each parameter with the data that it searches. */
const runSearches = { error: 'error', input: 'input' };
const UUID_LENGTH = 36;

/** The searches of the list of runs for the typed text, as a group like the groups of {@link findThings}. */
export function runSearch(asked) {
  const isOffered = asked !== '' && may('runs:read');
  const isId = ID.test(asked) && asked.length === UUID_LENGTH;
  const ways = Object.entries({ ...runSearches, ...(isId ? { event_id: 'event id' } : {}) });
  const items = ways.map(([by, name]) => ({
    key: `search ${by}`,
    text: `Search runs for “${asked}”`,
    more: `in the ${name}`,
    to: `runs?${new URLSearchParams({ by, q: asked })}`,
  }));
  return { name: 'Search runs', items: isOffered ? items : [] };
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

const ownerItem = ({ id, name }) => ({
  key: `owner ${id}`,
  text: `Tasks of ${name}`,
  more: '',
  to: `tasks?created_by=${id}`,
});

const errorItem = ({ id, error, count: many }) => ({
  key: id,
  text: error,
  more: `${counted(many, 'run')} in 24 h`,
  to: `runs?${new URLSearchParams({ error_group: id, state: 'failed', range: 'day' })}`,
});

const setting = (name, value, text) => ({ text, act: () => prefer(name, value) });

/** The actions that the agent may take from any view. */
function actions() {
  const { hold } = getState();
  return [
    may('tasks:write') && { text: 'New task', to: 'tasks/new' },
    may('ops') && hold === null && { text: 'Hold the service …', act: askToHold },
    may('ops') && hold !== null && { text: 'Release the service …', act: askToRelease },
    setting('theme', 'light', 'Light colours'),
    setting('theme', 'dark', 'Dark colours'),
    setting('theme', 'system', 'Use the system’s colours'),
    setting('zone', 'mine', 'Times in my zone'),
    setting('zone', 'task', 'Times in the task’s zone'),
    setting('zone', 'utc', 'Times in UTC'),
    { text: 'Show keyboard shortcuts', act: () => setState({ panel: 'keys' }) },
    { text: 'Log out', act: () => attempt(signOut) },
  ].filter(Boolean);
}

/** The views and actions whose names contain all the words, in groups like the groups of {@link findThings}. */
export function findActions(asked) {
  const matches = ({ text }) => hasWords(text, asked);
  const views = visibleGroups()
    .flat()
    .map(([to, text]) => ({ text, to }));
  const withKey = (item) => ({ ...item, key: item.text });
  return [
    { name: 'Views', items: views.filter(matches).map(withKey) },
    { name: 'Actions', items: actions().filter(matches).map(withKey) },
  ];
}
