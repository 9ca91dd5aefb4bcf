// Names of tasks and agents whose ids alone are known.

import { call, may } from './client.js';
import { setState } from './store.js';

/** How long a title is kept. Milliseconds. */
const TITLE_LIFETIME = 60_000;
/** Titles in one request. */
const MAX_TITLES = 100;
/** Agents in one request. */
const PAGE = 200;

const titles = new Map();
const agents = new Map();

/** The title of a task, or the end of its id: the start of an id is its time. */
export const titleOf = (id) => titles.get(id)?.title ?? `task ${id.slice(-6)}`;
export const agentName = (id) => agents.get(id) ?? `agent ${id.slice(-6)}`;

/** The time zone of a task; undefined if it is not known. */
export const zoneOf = (id) => titles.get(id)?.timezone;

/** Remembers the title and the time zone of a task that was read anyway. */
export const learnTitle = ({ id, title, timezone = zoneOf(id) }) =>
  void titles.set(id, { title, timezone, at: Date.now() });

/** The names that are known, sorted. */
export const agentNames = () => [...new Set(agents.values())].sort();

const UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i;
export const isUuid = (text) => UUID.test(text);

/** Actors that are no agents. */
const others = ['', 'service', 'anonymous'];

/** The id of the actor with a name or id; null if no known agent, or more than one, has the name. */
export function agentIdOf(name) {
  if (isUuid(name) || others.includes(name)) return name;
  const found = [...agents].filter(([, each]) => each === name);
  return found.length === 1 ? found[0][0] : null;
}

/** Remembers the name of an agent that was read anyway, perhaps of a removed one. */
export function learnAgent(id, name) {
  if (name !== null && name !== undefined) agents.set(id, name);
}

/** Reads the titles of tasks. Those that are not available stay ids. */
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

/** Reads the names of all agents, if the agent that is logged in may. Forgets those of an earlier session. */
export async function learnAgents() {
  agents.clear();
  if (!may('namespace:admin') && !may('audit:read')) return;
  for (let offset = 0, read = PAGE; read === PAGE; offset += read) {
    const page = await call('GET', 'agents', { query: { limit: PAGE, offset } });
    for (const { id, name } of page) learnAgent(id, name);
    read = page.length;
  }
  setState();
}
