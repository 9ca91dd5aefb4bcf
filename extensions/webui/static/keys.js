// The keys of the page: search, and moving in lists.

import { getState, setState } from './store.js';

/** What can be opened or moved to: rows of tables, and what a view marks as a row. */
const ROWS = 'tbody tr, [data-row]';
const SEARCH = 'input[type=search]:not(:disabled)';

/** Follows the keys from now on. */
export function followKeys() {
  addEventListener('keydown', take);
}

function take(event) {
  const { agent, keys } = getState();
  const { key, ctrlKey, metaKey, altKey, target } = event;
  // What a browser fills in by itself comes as an event without a key.
  if (agent === null || event.defaultPrevented || event.isComposing || key === undefined) return;
  if (document.querySelector('dialog[open]') !== null) return;
  const isCommand = ctrlKey || metaKey;
  if (isCommand && !altKey && key.toLowerCase() === 'k') {
    event.preventDefault();
    setState({ panel: 'search' });
    return;
  }
  if (isCommand || altKey || keys === 'off' || isTyping(target)) return;
  const act = acts[key];
  if (act === undefined) return;
  event.preventDefault();
  act();
}

const acts = {
  '/': focusSearch,
  j: () => move(1),
  k: () => move(-1),
  '?': () => setState({ panel: 'keys' }),
};

/** What takes keys itself. */
const CONTROLS = 'input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]';
const isTyping = (target) => target.closest(CONTROLS) !== null;

/** The search of the view, or else that of the page. */
function focusSearch() {
  const field = [...document.querySelectorAll(`main ${SEARCH}`)].find(isShown);
  if (field === undefined) setState({ panel: 'search' });
  else {
    field.focus();
    field.select();
  }
}

/** Moves the focus so many rows down, to the link that opens the row. */
function move(by) {
  const rows = [...document.querySelectorAll(`main :is(${ROWS})`)].filter(
    (row) => isShown(row) && linkOf(row) !== null,
  );
  const at = rows.indexOf(document.activeElement?.closest(ROWS));
  const next = at === -1 ? 0 : Math.max(0, Math.min(at + by, rows.length - 1));
  if (rows[next] !== undefined) linkOf(rows[next]).focus();
}

const linkOf = (row) => row.querySelector('a[href]') ?? row.querySelector('button');

const isShown = (element) => element.checkVisibility?.() ?? element.offsetParent !== null;
