// Lists with filters, which stand in the page's address, read page by page.

import { html, useEffect, useRef, useState } from '../preact.js';
import { useData } from '../data.js';
import { LiveMark } from '../live.js';
import { counted } from '../times.js';
import { Button, Table } from './elements.js';
import { Loaded } from './layout.js';
import { Field } from './field.js';

/** After the last key, before a list is read. Milliseconds. */
const TYPING_DELAY = 200;
/** Between two reads of a list. Milliseconds. */
const BEAT = 5000;

/** The values that the address gives to filters, `''` for others. */
export const filtersIn = (query, fields) =>
  Object.fromEntries(fields.map(({ name }) => [name, query.get(name) ?? '']));

/**
 * @param {string | null} view whose address keeps the filters; null: they are not kept
 * @param {Record<string, string>} initial
 * @param toAddress how the filters are written in the address, if not as they are
 * @returns `typed`: what the fields hold; `asked`: the filters that count, trimmed, with the cursors of the pages;
 *   `change(name, delay)` takes what was typed, in milliseconds; `turnTo(cursors)` goes to another page
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

/**
 * A list that is kept up to date, unless a person pauses that.
 * @param {(query: object, signal: AbortSignal) => Promise<{items: object[], total?: number, next_cursor: unknown}>} read
 *   gets the filters and the `cursor` of the page
 *   and, after a change, the position `after` which it must have passed
 * @param options as {@link useData} takes them; `every: null` if each read is recorded, so that only a person causes one
 * @returns what `useFilters` and `useData` return; `liveness`: of the list, as {@link LiveMark} takes it; `pause(how)`
 */
export function useList(view, initial, read, { every = BEAT, pace } = {}) {
  const list = useFilters(view, initial);
  const [isPaused, pause] = useState(false);
  const { filters, cursors } = list.asked;
  const query = { ...filters, cursor: cursors.at(-1) };
  const load = (signal, after) => read({ ...query, after }, signal);
  const beat = isPaused || every === null ? undefined : every;
  const result = useData(load, [list.asked], { every: beat, pace });
  return { ...list, ...result, liveness: livenessOf(result, isPaused, every), pause };
}

function livenessOf({ data, error }, isPaused, every) {
  if (every === null) return 'refused';
  if (isPaused) return 'paused';
  if (error !== null) return 'lost';
  return data === undefined ? 'connecting' : 'live';
}

/** While the service can't answer, what was read stays: the list reads again by itself, and says that it is not live. */
const withoutOutage = (list) =>
  list.data !== undefined && (list.error?.status ?? 0) >= 500 ? { ...list, error: null } : list;

/** @param {{name: string, label: string}[]} fields as {@link Field} takes them */
export const Filters = ({ list, fields, children }) =>
  html`<div class="row filters" role="search">
    ${fields.map(({ name, ...field }) => {
      const onInput = list.change(name, field.options === undefined ? TYPING_DELAY : 0);
      return html`<${Field} key=${name} ...${field} value=${list.typed[name]} onInput=${onInput} />`;
    })}
    ${children}
  </div>`;

/**
 * A page of a list, and the buttons to the pages beside it.
 * @param list what `useList` returns
 * @param one the name of an item; `table` as {@link Table} takes it
 */
export const List = ({ list, one, several, ...table }) =>
  html`<div class="results">
    <${Loaded} of=${withoutOutage(list)}>
      ${(page) => html`<${Table} ...${table} items=${page.items} />
        <${Pages} ...${page} list=${list} one=${one} several=${several} />`}
    <//>
  </div>`;

function Pages({ total, next_cursor: next, list, one, several }) {
  const { asked, turnTo, liveness } = list;
  const { cursors } = asked;
  const isOnly = cursors.length === 1 && next === null;
  const texts = [
    Number.isInteger(total) && counted(total, one, several),
    !isOnly && `page ${cursors.length}`,
  ];
  const button = (text, to) =>
    html`<${Button} kind="small" onClick=${() => turnTo(to)}>${text}<//>`;
  return html`<div class="row middle pages">
    <span class="soft" aria-live="polite">${texts.filter(Boolean).join(', ')}</span>
    ${cursors.length > 1 && button('Previous', cursors.slice(0, -1))}
    ${next !== null && button('Next', [...cursors, next])}
    <${LiveMark} state=${liveness} />
    <${UpdateButton} ...${list} />
  </div>`;
}

/** Pauses the updates of a list and resumes them; reads a list once that has none. */
function UpdateButton({ liveness, pause, reload }) {
  const isPaused = liveness === 'paused';
  const [text, act] =
    liveness === 'refused'
      ? ['Refresh', () => reload()]
      : [isPaused ? 'Resume updates' : 'Pause updates', () => pause(!isPaused)];
  return html`<${Button} kind="small" onClick=${act}>${text}<//>`;
}
