// The state that all components share, and how they follow it.

import { useLayoutEffect, useReducer, useRef } from './preact.js';

/**
 * - `isKnown`: whether the service has said who is logged in; `hasPersonal`: whether people log in at an identity
 *   provider
 * - `agent`: who is logged in, `{agentId, name, scopes}`, or null; `signedOut`: why the last session ended
 * - `address`: the path and query behind `#/`; `visit` counts navigations
 * - `trouble`: what is wrong with the service, or `''`; `hold`: the service's hold, or null
 * - `panel`: what is open above the page, `search`, `keys` or null
 * - `dialog`: the options of the open dialog, or null; `notice`: what has just happened, or `''`
 * - `namespaces`: their names, if there are several and the agent sees all; `namespace`: the chosen one, or `''` for
 *   all
 * - `isExact`: whether times are shown as dates
 * - `zone`: whose times are shown, `mine`, `task` or `utc`; `taskZone`: the zone of the task that is shown, or null
 * - `theme`: the colours, `system`, `light` or `dark`; `keys`: whether single-key shortcuts are `on` or `off`
 */
let state = {
  isKnown: false,
  hasPersonal: false,
  agent: null,
  signedOut: '',
  address: { path: '', query: '', visit: 0 },
  trouble: '',
  hold: null,
  panel: null,
  dialog: null,
  notice: '',
  namespaces: [],
  namespace: '',
  isExact: false,
  zone: 'mine',
  taskZone: null,
  theme: 'system',
  keys: 'on',
};
const listeners = new Set();

export const getState = () => state;

/**
 * Changes some members, and redraws the components whose selection has changed. Also works without changes, because a
 * selection may depend on the time.
 */
export function setState(changes = {}) {
  state = { ...state, ...changes };
  for (const listener of [...listeners]) listener();
}

/** A value of the state. The component is redrawn when it changes. */
export function useStore(select) {
  const [, redraw] = useReducer((count) => count + 1, 0);
  const selected = select(state);
  const latest = useRef();
  latest.current = { select, selected };
  useLayoutEffect(() => {
    const listener = () => {
      if (!Object.is(latest.current.select(state), latest.current.selected)) redraw();
    };
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, []);
  return selected;
}

let noticeEnds;

/** Shows a message for some seconds, to eyes and screen readers. */
export function notify(notice) {
  setState({ notice });
  clearTimeout(noticeEnds);
  noticeEnds = setTimeout(() => setState({ notice: '' }), 6000);
}

/** Does an action that a person asked for, and shows why it failed. @returns whether it succeeded */
export async function attempt(work, done) {
  try {
    await work();
    if (done !== undefined) notify(done);
    return true;
  } catch (error) {
    if (error.name !== 'AbortError') notify(error.message);
    return false;
  }
}
