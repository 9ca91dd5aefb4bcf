// The parts of a view: its head, sections, figures, and what stands where something is missing.

import { html, useLayoutEffect, useRef } from '../preact.js';
import { Button } from './elements.js';

/** The head of a view: its title, what is said beside it, and its actions. It names the browser's tab too. */
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

/** What may be behind a failure, and what to do, by the status of the response. */
const remedies = {
  403: 'Your agent lacks the scope for it. An admin can grant it.',
  404: 'It may have been removed, or belong to another namespace.',
  503: 'The service may be catching up with its log.',
};

/** Shown where something could not be read. */
export const Failure = ({ error, retry }) =>
  html`<div class="failure bad" role="alert">
    <div>
      <p class="name">${error.message}</p>
      ${remedies[error.status] && html`<p>${remedies[error.status]}</p>`}
    </div>
    ${retry && html`<${Button} onClick=${() => retry()}>Try again<//>`}
  </div>`;

/** Stands where something is being read: bars, after a moment. @param {number} lines */
export const Loading = ({ lines = 3 }) =>
  html`<div class="loading">
    <span class="hidden">Loading</span>
    ${Array.from({ length: lines }, () => html`<span class="bone" aria-hidden="true"></span>`)}
  </div>`;

/**
 * Draws the data of `useData` with the function between its tags, or says why they could not be read. While the service
 * does not respond, earlier data stay: a banner says so.
 */
export function Loaded({ of: { data, error, reload }, lines, children }) {
  if (error !== null && (data === undefined || error.status !== 0)) {
    return html`<${Failure} error=${error} retry=${reload} />`;
  }
  return data === undefined ? html`<${Loading} lines=${lines} />` : children(data);
}

/** A view whose subject has to be read first, under a heading that says so if that fails. */
export function LoadedView({ of: { data, error, reload }, children }) {
  if (data !== undefined) {
    const isStale = error !== null && error.status !== 0;
    return [isStale && html`<${Failure} error=${error} retry=${reload} />`, children(data)];
  }
  if (error === null) return html`<${Loading} lines=${8} />`;
  return html`<${Heading} title=${error.status === 404 ? 'Not found' : 'Could not load this page'} />
    <${Failure} error=${error} retry=${reload} />`;
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
