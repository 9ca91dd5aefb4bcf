// The keyboard shortcuts of the page: searching, and moving in lists.

import { getState, setState } from './store.js';

/** Where the focus can move: rows of tables, and other elements that a view marks as rows. */
const ROWS = 'tbody tr, [data-row]';
const SEARCH = 'input[type=search]:not(:disabled)';
/** The fields that narrow a list. Enter moves the focus to its rows. */
const FILTER = 'main [role=search] input';

/** Starts listening to the keyboard. */
export function followKeys() {
  addEventListener('keydown', take);
}

function take(event) {
  const { agent, keys } = getState();
  const { key, ctrlKey, metaKey, altKey, target } = event;
  // Autofill sends events without a key.
  if (agent === null || event.defaultPrevented || event.isComposing || key === undefined) return;
  if (document.querySelector('dialog[open]') !== null) return;
  const isCommand = ctrlKey || metaKey;
  if (isCommand && !altKey && key.toLowerCase() === 'k') {
    event.preventDefault();
    setState({ panel: 'search' });
    return;
  }
  if (isCommand || altKey) return;
  if (key === 'Enter' && target.matches(FILTER)) {
    event.preventDefault();
    move(1);
    return;
  }
  if (keys === 'off' || isTyping(target)) return;
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

/** Controls in which people type. */
const CONTROLS = 'input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]';
const isTyping = (target) => target.closest(CONTROLS) !== null;

/** Focuses the search field of the view; opens the search of the page if the view has none. */
function focusSearch() {
  const field = [...document.querySelectorAll(`main ${SEARCH}`)].find(isShown);
  if (field === undefined) setState({ panel: 'search' });
  else {
    field.focus();
    field.select();
  }
}

/** Moves the focus down by a number of rows, to the link that opens the row. */
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
