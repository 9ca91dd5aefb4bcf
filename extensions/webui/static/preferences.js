// A person's preferences in this browser: the colours, the time zone, and whether single-key shortcuts are on.

import { getState, setState } from './store.js';

const choices = {
  theme: ['system', 'light', 'dark'],
  zone: ['mine', 'task', 'utc'],
  keys: ['on', 'off'],
};

/** Restores the preferences. */
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
    // The browser stores nothing for this site, so the choice lasts until the page is closed.
  }
}

function read(name) {
  try {
    return localStorage.getItem(`svc-${name}`);
  } catch {
    return null;
  }
}

/** The style sheets follow the attribute. */
function showTheme() {
  const { theme } = getState();
  document.documentElement.dataset.theme = theme;
}
