// Saves files and copies text to the clipboard.

import { notify } from '../../store.js';

/** How long a download may take. Milliseconds. */
const KEPT_FOR = 60_000;

/** Saves a blob as a file. A plain link could not send the token. */
export function saveBlob(name, blob) {
  const address = URL.createObjectURL(blob);
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
  // The browser may still be saving it.
  setTimeout(() => URL.revokeObjectURL(address), KEPT_FOR);
}

/** Saves text as a file. */
export const saveText = (name, text) => saveBlob(name, new Blob([text], { type: 'text/plain' }));

/** Copies text. Browsers allow that only over HTTPS and on localhost. */
export async function copyText(text) {
  if (navigator.clipboard === undefined) {
    throw new Error('This browser copies only over HTTPS. Select the text and copy it.');
  }
  await navigator.clipboard.writeText(text);
  notify('Copied.');
}
