// Tables, states, texts, links and buttons.

import { html, useState } from '../preact.js';
import { writeJson } from '../json.js';
import { maySee } from '../routes.js';
import { attempt } from '../store.js';

/**
 * A table.
 * @param {string} caption what it lists, for screen readers
 * @param {([name: string, cell: string | ((item: object) => unknown), kind?: string] | false)[]} columns a cell may be
 *   the name of a member; kinds are `num`, `minor` (a phone has no room for it) and `grow` (for long texts)
 * @param {object[]} items the rows, distinguished by their member `rowKey`
 * @param empty shown instead of a table without rows
 */
export function Table({ caption, columns, items, rowKey = 'id', empty = 'Nothing here.' }) {
  if (items.length === 0) {
    return typeof empty === 'string' ? html`<${Nothing} text=${empty} />` : empty;
  }
  const shown = columns.filter(Boolean);
  const head = shown.map(([name, , kind]) => html`<th scope="col" class=${kind}>${name}</th>`);
  const contentOf = (cell, item) => (typeof cell === 'string' ? item[cell] : cell(item));
  const body = items.map(
    (item) => html`<tr key=${item[rowKey]}>
      ${shown.map(([, cell, kind]) => html`<td class=${kind}>${contentOf(cell, item)}</td>`)}
    </tr>`,
  );
  return html`<div class="wide" tabindex="0" role="region" aria-label=${caption}>
    <table aria-label=${caption}><thead><tr>${head}</tr></thead><tbody>${body}</tbody></table>
  </div>`;
}

/** Shown where there is nothing, with the next step. */
export const Nothing = ({ text, children }) =>
  html`<div class="nothing"><p>${text}</p>${children && html`<p class="soft">${children}</p>`}</div>`;

/** Text as it is, in lines. */
export const Lines = ({ label, children }) =>
  html`<pre tabindex="0" role="region" aria-label=${label}>${children}</pre>`;

export const Json = ({ label, value }) => html`<${Lines} label=${label}>${writeJson(value, 2)}<//>`;

const tones = {
  good: 'active succeeded fired following healthy delivered ready completed done approved reused',
  bad: 'failed missed unhealthy halted refused only_before newer_schema rejected',
  busy: 'running filling catching_up requested',
  wait: 'paused retrying queued waiting pending degraded opening snoozed on_hold did_not_run drained silent',
};
const toneByState = new Map(
  Object.entries(tones).flatMap(([tone, words]) => words.split(' ').map((word) => [word, tone])),
);

/** The tone of a state. */
export const toneOf = (word) => toneByState.get(word) ?? 'idle';

/** A state in its colour. @param tone overrides that colour */
export const State = ({ of: word, tone = toneOf(word) }) =>
  html`<span class="state ${tone}" data-state=${word}>${spaced(word)}</span>`;

/** `only_before` as `only before`. */
export const spaced = (word) => word.replaceAll('_', ' ');

export const Tags = ({ of }) => of.map((tag) => html`<span class="tag">${tag}</span> `);

/**
 * A button. It does nothing more until its action has ended, and keeps the focus. A failure is shown.
 * @param {() => unknown} onClick
 */
export function Button({ onClick, kind = '', label, children }) {
  const [isBusy, setBusy] = useState(false);
  const act = async () => {
    if (isBusy) return;
    setBusy(true);
    await attempt(onClick);
    setBusy(false);
  };
  return html`<button type="button" class=${kind} aria-label=${label} aria-busy=${isBusy} onClick=${act}>
    ${children}
  </button>`;
}

/** A link to an address of the page; only its text if the agent may not see that view. */
export const Link = ({ to, kind, children }) =>
  maySee(to) ? html`<a class=${kind} href="#/${to}">${children}</a>` : children;
