// The chosen step and view of a run, both kept in the page's address.

import { useRef, useState } from '../../preact.js';
import { setAddress } from '../../address.js';

/**
 * @param {string} path of the view in the address
 * @param {URLSearchParams} query of the address
 * @param {Record<string, string>} defaults values that the address leaves out; its keys are the parameters
 * @returns the values; `go(changes)` changes some of them in the address; `addressOf(changes)` returns that address
 */
export function useRunAddress(path, query, defaults) {
  const [chosen, choose] = useState(() =>
    Object.fromEntries(Object.keys(defaults).map((name) => [name, query.get(name)])),
  );
  // A change may be applied later than the rendering that requested it.
  const latest = useRef(chosen);
  const values = Object.fromEntries(
    Object.entries(chosen).map(([name, value]) => [name, value ?? defaults[name]]),
  );
  const queryOf = (changes) => {
    const all = Object.entries({ ...latest.current, ...changes });
    return new URLSearchParams(all.filter(([, value]) => value !== null));
  };
  const addressOf = (changes) => {
    const search = queryOf(changes);
    return search.size === 0 ? `#/${path}` : `#/${path}?${search}`;
  };
  const go = (changes) => {
    setAddress(path, queryOf(changes));
    latest.current = { ...latest.current, ...changes };
    choose(latest.current);
  };
  return { ...values, go, addressOf };
}

/**
 * The attributes of a link that changes the address without leaving the view. With a modifier key, it opens like any
 * other link.
 */
export function linkWithin(address, changes) {
  const onClick = (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    address.go(changes);
  };
  return { href: address.addressOf(changes), onClick };
}
