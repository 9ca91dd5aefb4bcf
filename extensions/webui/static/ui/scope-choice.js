// Scopes to choose from.

import { html } from '../preact.js';

/** The scopes of the service, and what they allow. */
const known = {
  'tasks:read': 'sees tasks, schedules and approvals',
  'tasks:read:own': 'sees its own tasks only',
  'tasks:write': 'creates and changes its tasks, and starts runs',
  'runs:read': 'sees runs and their results',
  'runs:read:own': 'sees the runs of its own tasks only',
  'approvals:write': 'approves and rejects',
  'events:read': 'sees published events',
  'events:publish': 'publishes events',
  'jobs:work': 'takes jobs as a worker and returns results',
  'audit:read': 'sees the audit trail and earlier states',
  'secrets:read': 'sees the names of secrets',
  'secrets:write': 'sets and deletes secrets',
  'namespace:admin': 'administers its namespace',
  ops: 'operates the service: holds, rebuilds',
  admin: 'may do everything, everywhere',
};

export const knownScopes = Object.keys(known);

/**
 * A group of boxes to tick.
 * @param {string[]} offered
 * @param {string[]} chosen
 * @param {(scopes: string[]) => void} onChange
 * @param fault what is wrong with the choice
 */
export function ScopeChoice({ label, offered, chosen, onChange, hint, fault }) {
  const toggle = (scope) => () =>
    onChange(chosen.includes(scope) ? chosen.filter((each) => each !== scope) : [...chosen, scope]);
  return html`<fieldset class="scopes">
    <legend>${label}</legend>
    <div class="boxes">
      ${offered.map(
        (scope) => html`<label key=${scope}>
          <input type="checkbox" name=${scope} checked=${chosen.includes(scope)} onChange=${toggle(scope)} />
          <code>${scope}</code> <span class="soft">${known[scope]}</span>
        </label>`,
      )}
    </div>
    <span class="hint">${hint}</span>
    <span class="fault" role="alert">${fault}</span>
  </fieldset>`;
}
