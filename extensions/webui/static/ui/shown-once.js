// A secret that the service shows once, with a button that copies it.

import { html, useLayoutEffect, useRef } from '../preact.js';
import { notify } from '../store.js';
import { Button } from './elements.js';

/**
 * @param {string} label what it is
 * @param {string} value the secret; it is kept nowhere else
 * @param {() => void} done called when the person has saved it
 */
export function ShownOnce({ label, value, done }) {
  const panel = useRef();
  const text = useRef();
  useLayoutEffect(() => panel.current.focus(), []);
  const copy = async () => {
    // Browsers allow the clipboard only to pages from a secure address.
    if (navigator.clipboard === undefined) {
      getSelection().selectAllChildren(text.current);
      notify('It is selected: copy it with the keyboard.');
      return;
    }
    await navigator.clipboard.writeText(value);
    notify('Copied.');
  };
  return html`<div class="card once" role="group" aria-label=${label} tabindex="-1" ref=${panel}>
    <p><strong>${label}</strong> Save it now. It will not be shown again.</p>
    <code ref=${text}>${value}</code>
    <div class="row middle">
      <${Button} kind="main-action" label="Copy: ${label}" onClick=${copy}>Copy<//>
      <${Button} onClick=${done}>I have saved it<//>
    </div>
  </div>`;
}
