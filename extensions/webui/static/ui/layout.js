// The parts of a view: its head, sections, figures, and placeholders for missing content.

import { html, useLayoutEffect, useMemo, useRef, useState } from '../preact.js';
import { isOutage } from '../client.js';
import { useStore } from '../store.js';
import { shownZone } from '../zones.js';
import { Button } from './elements.js';

/** The heading of a view: its title, a note beside it, and its actions. It names the browser's tab too. */
export function Heading({ title, beside, children }) {
  const heading = useRef();
  useLayoutEffect(() => {
    document.title = `${heading.current.textContent} – Task scheduling`;
  });
  return html`<div class="view-head">
    <h1 ref=${heading}>${title}</h1>
    ${beside}
    ${children && html`<div class="actions">${children}</div>`}
  </div>`;
}

/** A part of a view. @param aside shown at the right of its heading */
export const Section = ({ title, aside, kind = '', children }) =>
  html`<section class=${kind}>
    <div class="head"><h2>${title}</h2>${aside}</div>
    ${children}
  </section>`;

/** The likely cause of a failure and the remedy, by the status of the response. */
const remedies = {
  403: 'Your agent lacks the required scope. An admin can grant it.',
  404: 'It may have been removed, or belong to another namespace.',
  503: 'The service may be catching up with its log.',
};

/** Shown where something could not be read. */
export const Failure = ({ error, retry }) =>
  html`<div class="failure bad" role="alert">
    <div>
      <p class="name">${error.message}</p>
      ${remedies[error.status] && html`<p>${remedies[error.status]}</p>`}
      ${isOutage(error) && html`<p>This page keeps trying.</p>`}
    </div>
    ${retry && html`<${Button} onClick=${() => retry()}>Try again<//>`}
  </div>`;

/** A placeholder of bars while something is being read. It appears after a short delay. @param {number} lines */
export const Loading = ({ lines = 3 }) =>
  html`<div class="loading">
    <span class="hidden">Loading</span>
    ${Array.from({ length: lines }, () => html`<span class="bone" aria-hidden="true"></span>`)}
  </div>`;

/**
 * Draws the data of `useData` with the function between its tags, or says why they could not be read. While the service
 * does not respond, earlier data stay: a banner says so. Data of an earlier choice are dimmed until the data of the
 * present choice arrive. A function that stays the same draws the same data only once.
 */
export function Loaded({ of: { data, error, isOld, reload }, lines, children }) {
  const zone = useStore(shownZone);
  const drawn = useMemo(() => data !== undefined && children(data), [children, data, zone]);
  if (error !== null && (data === undefined || error.status !== 0)) {
    return html`<${Failure} error=${error} retry=${reload} />`;
  }
  if (data === undefined) return html`<${Loading} lines=${lines} />`;
  return [isOld && html`<div class="old" aria-hidden="true"></div>`, drawn];
}

/** A view whose subject must be read first. If that fails, a heading says so. */
export function LoadedView({ of: { data, error, reload }, children }) {
  if (data !== undefined) {
    const isStale = error !== null && error.status !== 0;
    return [isStale && html`<${Failure} error=${error} retry=${reload} />`, children(data)];
  }
  if (error === null) return html`<${Loading} lines=${8} />`;
  return html`<${Heading} title=${error.status === 404 ? 'Not found' : 'Could not load this page'} />
    <${Failure} error=${error} retry=${reload} />`;
}

/** Details behind a summary. They are not drawn until they are opened. @param {() => unknown} children draws it */
export function Unfolding({ summary, kind, children }) {
  const [isOpen, setOpen] = useState(false);
  return html`<details class=${kind} onToggle=${({ target }) => setOpen(target.open)}>
    <summary>${summary}</summary>
    ${isOpen && children()}
  </details>`;
}

/** Names and values. @param {([string, unknown] | false | null)[]} of pairs; false and null are left out */
export const Facts = ({ of }) =>
  html`<dl>
    ${of.map((pair) => pair && html`<dt>${pair[0]}</dt><dd>${pair[1] ?? '–'}</dd>`)}
  </dl>`;

/** A figure and its name. Left out while its value is undefined or null. */
export function Tile({ name, value, more, to }) {
  if ((value ?? null) === null) return null;
  const content = html`<span class="soft">${name}</span><strong>${value}</strong>
    ${more && html`<span class="soft">${more}</span>`}`;
  return to === undefined
    ? html`<div class="tile">${content}</div>`
    : html`<a class="tile" href="#/${to}">${content}</a>`;
}
