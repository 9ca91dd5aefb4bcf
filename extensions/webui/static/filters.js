// Filters of a list, which stand in the page's address, and the pages of the list.

import { useEffect, useRef, useState } from './preact.js';

/**
 * @param {string | null} view whose address keeps the filters; null: they are not kept
 * @param {Record<string, string>} initial
 * @param toAddress how the filters are written in the address, if not as they are
 * @returns `typed`: what the fields hold; `asked`: the same when nothing has been typed for a while, trimmed, with the
 *   cursors of the pages; `change(name, delay)` takes what was typed, in milliseconds; `turnTo(cursors)` goes to another page
 */
export function useFilters(view, initial, toAddress = (filters) => filters) {
  const [typed, setTyped] = useState(initial);
  const [asked, setAsked] = useState({ filters: initial, cursors: [undefined] });
  const timer = useRef();
  useEffect(() => () => clearTimeout(timer.current), []);
  useEffect(() => {
    if (view !== null) keepInAddress(view, toAddress(asked.filters));
  }, [asked.filters]);
  const change = (name, delay) => (value) => {
    const next = { ...typed, [name]: value };
    setTyped(next);
    clearTimeout(timer.current);
    const filters = Object.fromEntries(
      Object.entries(next).map(([key, each]) => [key, each.trim()]),
    );
    timer.current = setTimeout(() => setAsked({ filters, cursors: [undefined] }), delay);
  };
  const turnTo = (cursors) => setAsked(({ filters }) => ({ filters, cursors }));
  return { typed, asked, change, turnTo };
}

/** So that a view can be shared and come back to. */
function keepInAddress(view, filters) {
  const query = new URLSearchParams(Object.entries(filters).filter(([, value]) => value !== ''));
  history.replaceState(null, '', query.size === 0 ? `#/${view}` : `#/${view}?${query}`);
}

/** The values that the address gives to filters, `''` for others. */
export const filtersIn = (query, names) =>
  Object.fromEntries(names.map((name) => [name, query.get(name) ?? '']));
