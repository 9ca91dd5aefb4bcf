// The addresses of the page, and which of them the agent may see.

import { may } from './client.js';

/** The views in the navigation, and the scope that each needs; of several, one. */
const scopes = {
  overview: 'runs:read',
  tasks: 'tasks:read',
  runs: 'runs:read',
  approvals: 'tasks:read',
  workers: ['jobs:work', 'ops'],
  streams: 'audit:read',
  audit: 'audit:read',
  projections: 'ops',
  agents: 'admin',
};

/** The views that the agent may see. The first is shown if the address names none. */
export const visibleViews = () => Object.keys(scopes).filter(maySee);

/** Whether the agent may see an address, `runs/<id>` for instance. */
export const maySee = (address) => [scopes[address.split(/[/?]/)[0]]].flat().some(may);

/** Finds the route of a path in a list of `[pattern, component]`. `:id` in a pattern becomes a parameter. */
export function findRoute(routes, path) {
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
