// What tasks and agents are called, where only their ids are at hand, and links to what may be seen.

import { call, may } from './client.js';
import { h } from './dom.js';

/** How long a title is believed. Milliseconds. */
const FRESH = 60_000;
/** Most that are asked for at once. */
const MOST = 100;
/** Agents that one request brings. */
const PAGE = 200;

const titles = new Map();
let agents = null;
/** Names that came with what was read. */
const told = new Map();

/** Remembers what is known anyway. */
export const learnTitle = ({ id, title }) => void titles.set(id, { title, at: Date.now() });

/** The views of the page, and what one needs to see them. */
export const views = {
  overview: 'runs:read',
  tasks: 'tasks:read',
  runs: 'runs:read',
  streams: 'audit:read',
  audit: 'audit:read',
  projections: 'ops',
  agents: 'admin',
};

/** Whether the agent may see what an address leads to, `runs/<id>` say. */
export const maySee = (address) => may(views[address.split(/[/?]/)[0]]);

/** A link to an address of the page; no more than its text where the agent may not see what is there. */
export const link = (address, content, tag = 'a') =>
  maySee(address) ? h(tag, { href: `#/${address}` }, content) : content;

/** Sees to it that the titles of tasks are known. Those that can't be had stay ids. */
export async function learnTitles(ids, signal) {
  if (!may('tasks:read')) return;
  const now = Date.now();
  const wanted = [...new Set(ids)].filter((id) => !(now - titles.get(id)?.at < FRESH));
  for (let from = 0; from < wanted.length; from += MOST) {
    const query = { ids: wanted.slice(from, from + MOST).join(',') };
    try {
      const { tasks } = await call('GET', 'ext/webui/api/titles', { query, signal });
      for (const task of tasks) learnTitle(task);
    } catch (error) {
      if (signal?.aborted) throw error;
      return;
    }
  }
}

/** A link to a task, by its title. */
export const taskLink = (id) =>
  link(`tasks/${id}`, titles.get(id)?.title ?? `task ${shortId(id)}`, 'a.name');

/** A link to a run, by the first characters of its id. */
export const runLink = (id, before = '') => link(`runs/${id}`, `${before}${id.slice(0, 8)}`);

/** The last characters of an id: the first ones are the time at which it was made. */
const shortId = (id) => id.slice(-6);

/** Remembers the name of an agent that came along anyway, also of one that was removed. */
function learnAgent(id, name) {
  if (name !== null && name !== undefined) told.set(id, name);
}

/** Sees to it that the names of agents are known, where one may know them. */
export async function learnAgents(signal) {
  if (agents !== null || !(may('admin') || may('audit:read'))) return;
  const all = new Map();
  for (let read = PAGE; read === PAGE;) {
    const query = { limit: PAGE, offset: all.size };
    const page = await call('GET', 'agents', { query, signal });
    for (const { id, name } of page) all.set(id, name);
    read = page.length;
  }
  agents = all;
}

/** Forgets them: somebody else may have logged in, or one was added. */
export function forgetAgents() {
  agents = null;
  told.clear();
}

/** Who did something: an agent by name, or the service. @param name where it is known anyway */
export function actor(id, name) {
  learnAgent(id, name);
  return id === 'service'
    ? h('span.soft', {}, 'service')
    : h('span', { title: id }, agents?.get(id) ?? told.get(id) ?? `agent ${shortId(id)}`);
}
