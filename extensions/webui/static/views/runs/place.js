// Where a person is in a run: the step and the kind of drawing, which stand in the page's address.

import { useState } from '../../preact.js';
import { setAddress } from '../../address.js';

/**
 * @param {string} path of the view in the address
 * @param {URLSearchParams} query of the address
 * @param {Record<string, string>} defaults values that the address leaves out; its keys are the parameters
 * @returns the values; `go(changes)` changes some and the address; `addressOf(changes)` is that address
 */
export function usePlace(path, query, defaults) {
  const [chosen, choose] = useState(() =>
    Object.fromEntries(Object.keys(defaults).map((name) => [name, query.get(name)])),
  );
  const values = Object.fromEntries(
    Object.entries(chosen).map(([name, value]) => [name, value ?? defaults[name]]),
  );
  const queryOf = (changes) => {
    const all = Object.entries({ ...chosen, ...changes });
    return new URLSearchParams(all.filter(([, value]) => value !== null));
  };
  const addressOf = (changes) => {
    const search = queryOf(changes);
    return search.size === 0 ? `#/${path}` : `#/${path}?${search}`;
  };
  const go = (changes) => {
    setAddress(path, queryOf(changes));
    choose((before) => ({ ...before, ...changes }));
  };
  return { ...values, go, addressOf };
}

/** The attributes of a link that changes the place without leaving the view; elsewhere it opens as any other. */
export function linkWithin(place, changes) {
  const onClick = (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    place.go(changes);
  };
  return { href: place.addressOf(changes), onClick };
}
