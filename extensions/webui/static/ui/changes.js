// The changes of an event, field by field.

import { html } from '../preact.js';
import { writeJson } from '../json.js';

/** `title: "a" → "b"` for each change */
export const Changes = ({ of }) =>
  html`<ul class="list">
    ${of.map(
      ({ path, before, after }) => html`<li>
        <code>${path}</code> ${before !== null && before !== undefined && html`<del>${writeJson(before)}</del> → `}
        <ins>${writeJson(after ?? null)}</ins>
      </li>`,
    )}
  </ul>`;
