// The address of the page, and the state of its view that each entry of the browser's history keeps.

import { useRef, useState } from './preact.js';
import { presentPath } from './routes.js';
import { getState, setState } from './store.js';

/** The delay in milliseconds before a change is written to the history. Browsers limit how often a page may do that. */
const KEEP_DELAY = 250;
/** How long a view may take to grow to its former height, in milliseconds. */
const GROWTH_LIMIT = 20_000;

/** State remembered since the page was loaded, by the entry's key. It reaches the browser's history a little later. */
const entries = new Map();
/** The entry that is shown: `{key, scroll, values}`. */
let current = null;
/** The address that is shown. That of the browser differs between a navigation and its event. */
let shownHash;
let visits = 0;
let timer;
let stopScrolling = () => {};

const newEntry = (values = {}) => ({
  key: `${performance.timeOrigin}-${performance.now()}`,
  scroll: 0,
  values,
});

/** Follows the address from now on. Each navigation mounts its view again. */
export function followAddress() {
  history.scrollRestoration = 'manual';
  addEventListener('hashchange', navigate);
  addEventListener('scroll', keepScroll, { passive: true });
  addEventListener('pagehide', keep);
  navigate();
}

function navigate() {
  clearTimeout(timer);
  const [given, query = ''] = location.hash.replace(/^#\/?/, '').split('?');
  const path = presentPath(given.replace(/\/$/, ''));
  const isMoved = path !== given.replace(/\/$/, '');
  const kept = history.state;
  show(entries.get(kept?.key) ?? (isEntry(kept) ? kept : newEntry()));
  history.replaceState(current, '', ...(isMoved ? [hashOf(path, query)] : []));
  visits += 1;
  shownHash = location.hash;
  setState({ address: { path, query, visit: visits }, dialog: null, panel: null });
  restoreScroll(current.scroll);
}

const isEntry = (state) =>
  typeof state?.key === 'string' && Number.isFinite(state.scroll) && state.values !== undefined;

function show(entry) {
  current = entry;
  entries.set(entry.key, entry);
}

const hashOf = (path, query) => (String(query) === '' ? `#/${path}` : `#/${path}?${query}`);

/**
 * Changes the address without leaving the view.
 * @param {string | URLSearchParams} query of the address
 * @param {{values?: object}} [step] creates a new entry of the history, which remembers these values; without it, the
 *   present entry is replaced
 */
export function setAddress(path, query, step) {
  // A view that is about to be left must not undo the navigation.
  if (location.hash !== shownHash || hashOf(path, query) === location.hash) return;
  if (step === undefined) history.replaceState(current, '', hashOf(path, query));
  else {
    keep();
    show(newEntry(step.values));
    history.pushState(current, '', hashOf(path, query));
    scrollTo(0, 0);
  }
  shownHash = location.hash;
  setState({ address: { ...getState().address, path, query: String(query) } });
}

/**
 * Like `useState`, but going back, going forward and a reload bring the value back. Never for secrets.
 * @param {string} name of the value among those of the view
 * @returns `[value, set, forget]`
 */
export function useRemembered(name, initial) {
  const entry = useRef(current).current;
  const [value, setValue] = useState(
    () => entry.values[name] ?? (typeof initial === 'function' ? initial() : initial),
  );
  const set = (next) =>
    setValue((before) => {
      const after = typeof next === 'function' ? next(before) : next;
      entry.values[name] = after;
      keepSoon();
      return after;
    });
  const forget = () => {
    delete entry.values[name];
    keep();
  };
  return [value, set, forget];
}

/** A value that the present entry remembers, or undefined. */
export const remembered = (name) => current.values[name];

function keepScroll() {
  current.scroll = Math.round(scrollY);
  keepSoon();
}

function keepSoon() {
  clearTimeout(timer);
  timer = setTimeout(keep, KEEP_DELAY);
}

function keep() {
  clearTimeout(timer);
  // Between a navigation and its event, the history is ahead of the page.
  if (history.state?.key === current.key) history.replaceState(current, '');
}

/** Restores the scroll position once the view is long enough, unless the person acts first. */
function restoreScroll(wanted) {
  stopScrolling();
  if (wanted === 0) return scrollTo(0, 0);
  const stopping = new AbortController();
  const { signal } = stopping;
  const move = () => {
    scrollTo(0, wanted);
    if (Math.abs(scrollY - wanted) <= 1) stopScrolling();
  };
  const growth = new ResizeObserver(move);
  const limit = setTimeout(() => stopScrolling(), GROWTH_LIMIT);
  removeEventListener('scroll', keepScroll);
  stopScrolling = () => {
    stopScrolling = () => {};
    stopping.abort();
    growth.disconnect();
    clearTimeout(limit);
    addEventListener('scroll', keepScroll, { passive: true });
  };
  for (const act of ['wheel', 'touchstart', 'keydown', 'pointerdown']) {
    addEventListener(act, () => stopScrolling(), { signal, passive: true });
  }
  growth.observe(document.body);
}
