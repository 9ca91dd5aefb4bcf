// The parts of System, each with an address of its own.

import { html } from '../../preact.js';
import { maySee } from '../../routes.js';

const parts = [
  ['system', 'Health and hold'],
  ['system/read-models', 'Read models'],
  ['system/streams', 'Streams'],
];

/** @param {string} current the path of the part that is shown */
export const SystemTabs = ({ current }) =>
  html`<nav class="tabs" aria-label="System">
    ${parts
      .filter(([path]) => maySee(path))
      .map(
        ([path, name]) => html`<a href="#/${path}" aria-current=${path === current ? 'page' : null}>
          ${name}
        </a>`,
      )}
  </nav>`;
