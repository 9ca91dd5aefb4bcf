// A dialog above the page: the search, and the keys.

import { html, useLayoutEffect, useRef } from '../preact.js';
import { setState } from '../store.js';

export const closePanel = () => setState({ panel: null });

/** @param {string} title for screen readers @param {string} kind a class */
export function Panel({ title, kind, children }) {
  const dialog = useRef();
  useLayoutEffect(() => {
    const shown = dialog.current;
    shown.showModal();
    return () => shown.close();
  }, []);
  const cancel = (event) => {
    event.preventDefault();
    closePanel();
  };
  // A click on the backdrop has the dialog as its target.
  const leave = ({ target }) => target === dialog.current && closePanel();
  return html`<dialog ref=${dialog} class=${kind} aria-label=${title} onCancel=${cancel} onClick=${leave}>
    <div class="inside">${children}</div>
  </dialog>`;
}
