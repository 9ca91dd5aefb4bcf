// The filters of a list as chips, and views of it that a person has saved in this browser.

import { html, useState } from '../../preact.js';
import { agentName } from '../../names.js';
import { ask } from '../../ui/dialog.js';
import { Button } from '../../ui/elements.js';

const KEY = 'svc-task-views';
const orders = {
  title: 'name',
  next: 'next run',
  p95: 'p95, slowest first',
  owner: 'owner',
  health: 'health, worst first',
};

/** The filters of the list of tasks, in words. */
const words = {
  search: (value) => `title has “${value}”`,
  status: (value) => `only ${value}`,
  schedule_kind: (value) => `only ${value}`,
  tag: (value) => `tagged ${value}`,
  secret: (value) => `using the secret ${value}`,
  created_by: (value) => `owned by ${agentName(value)}`,
  sort: (value) => `sorted by ${orders[value] ?? value}`,
};

/** The filters in effect, each as a button that removes it. */
export function Chips({ list }) {
  const { filters } = list.asked;
  const set = Object.keys(words).filter((name) => filters[name]);
  if (set.length === 0) return null;
  return html`<div class="row middle chips" role="group" aria-label="Filters that are set">
    ${set.map((name) => {
      const text = words[name](filters[name]);
      return html`<${Button} key=${name} kind="small chip" label="${text}, remove"
        onClick=${() => list.change(name, 0)('')}>${text}<span aria-hidden="true"> ×</span><//>`;
    })}
  </div>`;
}

/** Saved views as links, and a button to save the present one. */
export function SavedViews({ filters }) {
  const [views, setViews] = useState(readViews);
  const keep = (next) => {
    setViews(next);
    writeViews(next);
  };
  const query = String(new URLSearchParams(Object.entries(filters).filter(([, value]) => value)));
  const isSaved = views.some((view) => view.query === query);
  const save = () =>
    ask({
      title: 'Save this view',
      text: 'It is kept in this browser.',
      fields: [{ name: 'name', label: 'Name', maxlength: 40, required: 'Enter a name.' }],
      action: 'Save',
      act: async ({ name }) =>
        keep([...views.filter((view) => view.name !== name), { name, query }]),
      done: 'The view was saved.',
    });
  if (views.length === 0 && query === '') return null;
  return html`<div class="row middle chips" role="group" aria-label="Saved views">
    ${views.map(
      (view) => html`<span key=${view.name} class="saved">
        <a class="button small" href="#/tasks?${view.query}" aria-current=${view.query === query ? 'page' : null}>${view.name}</a>
        <${Button} kind="quiet small" label="Forget the view ${view.name}"
          onClick=${() => keep(views.filter((each) => each !== view))}>×<//>
      </span>`,
    )}
    ${query !== '' && !isSaved && html`<${Button} kind="small" onClick=${save}>Save this view …<//>`}
  </div>`;
}

function readViews() {
  try {
    const views = JSON.parse(localStorage.getItem(KEY) ?? '[]');
    return Array.isArray(views) ? views.filter(isView) : [];
  } catch {
    // Nothing is stored, or something else is stored under this key.
    return [];
  }
}

const isView = (view) => typeof view?.name === 'string' && typeof view.query === 'string';

function writeViews(views) {
  try {
    localStorage.setItem(KEY, JSON.stringify(views));
  } catch {
    // The browser stores nothing for this site, so the views last until the page is closed.
  }
}
