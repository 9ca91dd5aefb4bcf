// The addresses of the page, and which of them the agent may see.

import { may } from './client.js';

/** The views in the rail, in groups, with their names. The rail lists only views that have a route. */
const groups = [
  [
    ['overview', 'Overview'],
    ['tasks', 'Tasks'],
    ['runs', 'Runs'],
    ['events', 'Events'],
    ['insights', 'Insights'],
  ],
  [
    ['approvals', 'Approvals'],
    ['workers', 'Workers'],
  ],
  [
    ['audit', 'Audit'],
    ['agents', 'Agents'],
    ['secrets', 'Secrets'],
    ['namespaces', 'Namespaces'],
  ],
  [['system', 'System']],
];

/**
 * The scope that an address needs, by its prefix, in which `:id` stands for any id; the longest prefix counts. Of several
 * scopes, one suffices; null: none.
 */
const scopes = {
  overview: 'runs:read',
  tasks: 'tasks:read',
  runs: 'runs:read',
  events: ['events:read', 'tasks:read', 'events:publish'],
  'events/:id': 'events:read',
  insights: 'runs:read',
  approvals: 'tasks:read',
  workers: ['jobs:work', 'ops'],
  audit: 'audit:read',
  // Every agent sees itself.
  agents: null,
  'agents/keys': 'admin',
  'agents/resent': 'admin',
  secrets: ['secrets:read', 'secrets:write', 'namespace:admin'],
  namespaces: 'namespace:admin',
  system: ['ops', 'audit:read'],
  'system/read-models': 'ops',
  'system/streams': 'audit:read',
};

/** The present addresses of views that have moved, by their old address. */
const moved = { streams: 'system/streams', projections: 'system/read-models' };

/** Patterns of addresses with their views, as `[pattern, component]`. */
let routes = [];

/** @param {[pattern: string, component: unknown][]} all `:id` in a pattern becomes a property of the view */
export function setRoutes(all) {
  routes = all;
}

/** The rail's groups of the views that the agent may see, as `[path, name]`. */
export const visibleGroups = () =>
  groups
    .map((views) => views.filter(([path]) => hasRoute(path) && maySee(path)))
    .filter((views) => views.length > 0);

/** The view to show when the address names none; `''` if the agent may not see any. */
export const firstView = () => visibleGroups()[0]?.[0][0] ?? '';

const hasRoute = (path) => routes.some(([pattern]) => pattern === path);

/** Whether the agent may see an address, `runs/<id>` for instance. */
export function maySee(address) {
  const parts = presentPath(address.split('?')[0]).split('/');
  const ofOne = parts.length > 1 ? scopes[`${parts[0]}/:id`] : undefined;
  const needed = scopes[parts.slice(0, 2).join('/')] ?? ofOne ?? scopes[parts[0]];
  return needed === null || [needed].flat().some(may);
}

/** The present address of a path: views may have moved. */
export function presentPath(path) {
  const [first, ...others] = path.split('/');
  return Object.hasOwn(moved, first) ? [moved[first], ...others].join('/') : path;
}

/** Finds the route of a path. `:id` in its pattern becomes a parameter. */
export function findRoute(path) {
  const parts = path.split('/');
  for (const [pattern, component] of routes) {
    const wanted = pattern.split('/');
    if (wanted.length !== parts.length) continue;
    const parameters = {};
    const matches = wanted.every((each, n) => {
      if (!each.startsWith(':')) return each === parts[n];
      parameters[each.slice(1)] = decoded(parts[n]);
      return parts[n] !== '';
    });
    if (matches) return { component, parameters };
  }
  return null;
}

/** A part that was typed by hand may not be valid encoding. It is then taken literally. */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
