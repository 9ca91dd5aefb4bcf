// What a person has chosen for this browser: the colours, the zone of the times, and whether single keys do something.

import { getState, setState } from './store.js';

const choices = {
  theme: ['system', 'light', 'dark'],
  zone: ['mine', 'task', 'utc'],
  keys: ['on', 'off'],
};

/** Reads what was chosen earlier. */
export function recallPreferences() {
  for (const [name, allowed] of Object.entries(choices)) {
    const chosen = read(name);
    if (allowed.includes(chosen)) setState({ [name]: chosen });
  }
  showTheme();
}

/** @param {'theme' | 'zone' | 'keys'} name @param value one of its choices */
export function prefer(name, value) {
  setState({ [name]: value });
  showTheme();
  try {
    localStorage.setItem(`svc-${name}`, value);
  } catch {
    // A browser that keeps nothing for this site: the choice holds until the page is closed.
  }
}

function read(name) {
  try {
    return localStorage.getItem(`svc-${name}`);
  } catch {
    return null;
  }
}

/** The style sheets follow the attribute; without it, the system. */
function showTheme() {
  const { theme } = getState();
  document.documentElement.dataset.theme = theme;
}
