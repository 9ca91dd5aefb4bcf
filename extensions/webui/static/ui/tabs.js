// The parts of a view, each with an address of its own.

import { html } from '../preact.js';
import { maySee } from '../routes.js';

/**
 * Left out where the agent may see one part at most.
 * @param {string} label for screen readers
 * @param {[path: string, name: string][]} parts
 * @param {string} current the path of the part that is shown
 */
export function Tabs({ label, parts, current }) {
  const shown = parts.filter(([path]) => maySee(path));
  if (shown.length < 2) return null;
  return html`<nav class="tabs" aria-label=${label}>
    ${shown.map(
      ([
        path,
        name,
      ]) => html`<a key=${path} href="#/${path}" aria-current=${path === current ? 'page' : null}>
        ${name}
      </a>`,
    )}
  </nav>`;
}
