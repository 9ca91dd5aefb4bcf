// Names of tasks, agents and errors that are known only by their ids.

import { agentId, call, may, ownName } from './client.js';
import { setState } from './store.js';

/** How long a title is kept. Milliseconds. */
const TITLE_LIFETIME = 60_000;
/** Titles in one request. */
const MAX_TITLES = 100;
/** Agents in one request. */
const PAGE = 200;

/** How many days are searched for an error, and how many errors one request reads. */
const ERRORS = { days: 31, limit: 200 };

const titles = new Map();
const agents = new Map();
const errors = new Map();

/** The title of a task, or the end of its id: the start of an id is its time. */
export const titleOf = (id) => titles.get(id)?.title ?? `task ${id.slice(-6)}`;
export const agentName = (id) => agents.get(id) ?? `agent ${id.slice(-6)}`;
/** The text of an error group, or the start of its id. */
export const errorName = (id) => errors.get(id) ?? `error ${id.slice(0, 6)}`;

/** The time zone of a task; undefined if it is not known. */
export const zoneOf = (id) => titles.get(id)?.timezone;

/** Remembers the title and the time zone of a task that was read for another purpose. */
export const learnTitle = ({ id, title, timezone = zoneOf(id) }) =>
  void titles.set(id, { title, timezone, at: Date.now() });

/** Remembers the texts of error groups that were read for another purpose. */
export function learnErrors(groups) {
  for (const { id, error } of groups) errors.set(id, error);
}

/** Looks up the text of an error group once. A group that did not occur recently keeps its id. */
export async function learnError(id, signal) {
  if (id === '' || errors.has(id) || !may('runs:read')) return;
  const { items } = await call('GET', 'stats/errors', { query: ERRORS, signal });
  learnErrors([{ id, error: errorName(id) }, ...items]);
}

/** The names that are known, sorted. */
export const agentNames = () => [...new Set(agents.values())].sort();

const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;
export const isUuid = (text) => UUID.test(text);

/** Actors that are not agents. */
const others = ['', 'service', 'anonymous'];

/** The id of the actor with this name or id; null unless exactly one known agent has the name. */
export function agentIdOf(name) {
  if (isUuid(name) || others.includes(name)) return name;
  const found = [...agents].filter(([, each]) => each === name);
  return found.length === 1 ? found[0][0] : null;
}

/** Remembers the name of an agent that was read anyway, perhaps of a removed one. */
export function learnAgent(id, name) {
  if (name !== null && name !== undefined) agents.set(id, name);
}

/** Reads the titles of tasks. Tasks without an available title keep their ids. */
export async function learnTitles(ids, signal) {
  if (!may('tasks:read')) return;
  const now = Date.now();
  const wanted = [...new Set(ids)].filter((id) => !(now - titles.get(id)?.at < TITLE_LIFETIME));
  for (let from = 0; from < wanted.length; from += MAX_TITLES) {
    const query = { ids: wanted.slice(from, from + MAX_TITLES).join(',') };
    try {
      const { tasks } = await call('GET', 'ext/webui/api/titles', { query, signal });
      for (const task of tasks) learnTitle(task);
    } catch (error) {
      if (signal?.aborted) throw error;
      return;
    }
  }
}

/**
 * Learns the name of the agent that is logged in, and reads the names of all agents if it may. Forgets the names of an
 * earlier session.
 */
export async function learnAgents() {
  agents.clear();
  learnAgent(agentId(), ownName());
  setState();
  if (!may('namespace:admin') && !may('audit:read')) return;
  for (let offset = 0, read = PAGE; read === PAGE; offset += read) {
    const page = await call('GET', 'agents', { query: { limit: PAGE, offset } });
    for (const { id, name } of page) learnAgent(id, name);
    read = page.length;
  }
  setState();
}
