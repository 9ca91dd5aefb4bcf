// Who paused or snoozed a task, when, and why.

import { html } from '../../preact.js';
import { State } from '../../ui/elements.js';
import { Actor, Instant, When } from '../../ui/names.js';

/** Why the service itself paused a task. */
const causes = {
  failures: 'it failed too often in a row',
  scope_lost: 'its owner lost the scope tasks:write',
  agent_removed: 'its owner was removed',
};

/** @param {boolean} isShort for lists */
export function PausedBy({ task: { paused, pause_reason: cause, status }, isShort = false }) {
  if (status !== 'paused') return null;
  // Older releases recorded nothing about a pause.
  if (!paused) return html`<${State} of="paused" />`;
  const why = paused.reason ?? causes[cause];
  const who = html`by <${Actor} id=${paused.by} name=${paused.by_name} />`;
  return html`<span class="note"><${State} of="paused" /> ${who}${' '}
    ${isShort ? html`<${When} at=${paused.at} />` : html`at <${Instant} at=${paused.at} />`}${why && `: ${why}`}</span>`;
}

/** Shown while the next fire is postponed. */
export function SnoozedBy({ task: { snoozed } }) {
  if (!snoozed) return null;
  const who = html`by <${Actor} id=${snoozed.by} name=${snoozed.by_name} />`;
  return html`<span class="note"><${State} of="snoozed" /> until <${Instant} at=${snoozed.until} /> ${who}${' '}
    at <${Instant} at=${snoozed.at} />${snoozed.reason && `: ${snoozed.reason}`}</span>`;
}
