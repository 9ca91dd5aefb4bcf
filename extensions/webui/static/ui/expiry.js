// When something expires: in words, and as fields of a form.

import { html } from '../preact.js';
import { Field } from './field.js';
import { State } from './elements.js';
import { When } from './names.js';

const DAY = 86_400_000;
/** How far a lifetime may be from a usual one, as clocks differ. Milliseconds. */
const CLOCK_TOLERANCE_MS = 60_000;
const AT = 'at';
const lifetimes = { 30: '30 days', 90: '90 days', 365: 'a year', '': 'never', [AT]: 'at a time …' };

/** An expiry; null: never. It is marked once it is over, and `soon` milliseconds before. */
export function Expiry({ at, soon = 0 }) {
  if (at === null) return html`<span class="soft">never</span>`;
  const left = Date.parse(at) - Date.now();
  const isOver = left <= 0;
  return html`${isOver && html`<${State} of="expired" tone="bad" /> `}
    ${!isOver && left <= soon && html`<${State} of="soon" tone="wait" /> `}<${When} at=${at} />`;
}

/** The initial values of a form that asks when something expires: in a number of days, or never (`''`). */
export const lifetimeOf = (days) => ({ lifetime: String(days), expires_at: '' });

/** As {@link lifetimeOf}, for something that has an expiry: the same lifetime again, or the same instant. */
export function lifetimeLike({ updated_at: from, expires_at: at }) {
  if (at === null) return lifetimeOf('');
  const length = Date.parse(at) - Date.parse(from);
  const usual = Object.keys(lifetimes).find(
    (days) => Number(days) > 0 && Math.abs(Number(days) * DAY - length) < CLOCK_TOLERANCE_MS,
  );
  if (usual !== undefined) return lifetimeOf(usual);
  return { lifetime: AT, expires_at: at };
}

/** The fields of a form with `lifetime` and `expires_at`. */
export const LifetimeFields = ({ form }) =>
  html`<${Field} label="Expires" options=${lifetimes} ...${form.field('lifetime')}
      fault=${form.faults.expires_at} />
    ${
      form.values.lifetime === AT &&
      html`<${Field} label="At" type="instant" ...${form.field('expires_at')} fault="" />`
    }`;

/** The instant that these fields mean, in ISO 8601; null for never. */
export function expiryOf({ lifetime, expires_at: at }) {
  if (lifetime === '') return null;
  return lifetime === AT ? at : new Date(Date.now() + Number(lifetime) * DAY).toISOString();
}
