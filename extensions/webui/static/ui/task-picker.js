// Chooses tasks by their titles.

import { html, useId, useState } from '../preact.js';
import { call, may } from '../client.js';
import { useData, useDebounced } from '../data.js';
import { learnTitle, titleOf } from '../names.js';
import { Button } from './elements.js';
import { Field } from './field.js';
import { Loaded } from './layout.js';

/** The most tasks offered at a time. */
const MAX_FOUND = 8;
/** The delay between the last key and the search for tasks, in milliseconds. */
const TYPING_DELAY = 200;

/**
 * @param {string[]} chosen ids of tasks
 * @param {(ids: string[]) => void} onChange
 */
export function TaskPicker({ label, chosen, onChange, fault }) {
  const [typed, type] = useState('');
  const search = useDebounced(typed.trim(), TYPING_DELAY);
  const legend = useId();
  const found = useData(
    async (signal) => {
      if (!may('tasks:read')) return [];
      const { items } = await call('GET', 'tasks', { query: { search, limit: MAX_FOUND }, signal });
      items.forEach(learnTitle);
      return items;
    },
    [search],
  );
  const add = (id) => onChange([...chosen, id]);
  return html`<fieldset class="picker" aria-labelledby=${legend}>
    <legend id=${legend}>${label}</legend>
    <ul class="plain">
      ${chosen.map(
        (id) => html`<li key=${id}>
          ${titleOf(id)} <${Button} kind="small" label="Leave out ${titleOf(id)}"
            onClick=${() => onChange(chosen.filter((each) => each !== id))}>Leave out<//>
        </li>`,
      )}
      ${chosen.length === 0 && html`<li class="soft">none yet</li>`}
    </ul>
    <${Field} label="Find a task" type="search" value=${typed} onInput=${type} />
    <${Loaded} of=${found}>
      ${(tasks) => html`<div class="row chips">
        ${tasks
          .filter(({ id }) => !chosen.includes(id))
          .map(
            ({ id, title }) =>
              html`<${Button} key=${id} kind="small" label="Add ${title}" onClick=${() => add(id)}>${title}<//>`,
          )}
      </div>`}
    <//>
    <span class="fault" role="alert">${fault}</span>
  </fieldset>`;
}
