// Lists with filters, which stand in the page's address, read page by page.

import { html, useEffect, useRef, useState } from '../preact.js';
import { remembered, setAddress } from '../address.js';
import { useData } from '../data.js';
import { LiveMark } from '../live.js';
import { getState } from '../store.js';
import { counted, isoOf } from '../times.js';
import { Button, Table } from './elements.js';
import { Loaded } from './layout.js';
import { Field } from './field.js';

/** After the last key, before a list is read. Milliseconds. */
const TYPING_DELAY = 200;
/** Between two reads of a list. Milliseconds. */
const BEAT = 5000;

/** What a `datetime-local` field holds, and what addresses had of it once. */
const WALL_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?$/;

/**
 * The values that the address gives to filters, `''` for others. Times are instants: the address means the same to
 * everybody, in whatever zone they look at it.
 */
export const filtersIn = (query, fields) =>
  Object.fromEntries(
    fields.map(({ name }) => {
      const value = query.get(name) ?? '';
      return [name, WALL_TIME.test(value) ? isoOf(value) : value];
    }),
  );

/** The page of a list in the address; the parameters are no filters. */
const pageParameters = ['page', 'cursor'];
const readPage = () => {
  const query = new URLSearchParams(getState().address.query);
  return { number: Number(query.get('page')) || 1, cursor: query.get('cursor') ?? undefined };
};

/** The cursors of the pages up to the present one; null for those that are not known in this browser. */
function cursorsInAddress() {
  const { number, cursor } = readPage();
  if (cursor === undefined) return [undefined];
  const known = remembered('cursors');
  return known?.at(-1) === cursor
    ? [undefined, ...known]
    : [undefined, ...Array.from({ length: Math.max(0, number - 2) }, () => null), cursor];
}

/**
 * @param {string | null} view whose address keeps the filters and the page; null: they are not kept
 * @param {Record<string, string>} initial
 * @param toAddress how the filters are written in the address, if not as they are
 * @returns `typed`: what the fields hold; `asked`: the filters that count, trimmed, with the cursors of the pages;
 *   `change(name, delay)` takes what was typed, in milliseconds; `changeAll(changes)` takes several at once;
 *   `turnTo(cursors)` goes to another page
 */
export function useFilters(view, initial, toAddress = (filters) => filters) {
  const [typed, setTyped] = useState(initial);
  const [asked, setAsked] = useState(() => ({
    filters: initial,
    cursors: view === null ? [undefined] : cursorsInAddress(),
  }));
  const timer = useRef();
  const isFirst = useRef(true);
  useEffect(() => () => clearTimeout(timer.current), []);
  useEffect(() => {
    // At first, the address is where they come from.
    const cursors = isFirst.current ? asked.cursors : [undefined];
    isFirst.current = false;
    if (view !== null) setAddress(view, queryOf(toAddress(asked.filters), cursors));
  }, [asked.filters]);
  const take = (next, delay) => {
    setTyped(next);
    clearTimeout(timer.current);
    const filters = Object.fromEntries(
      Object.entries(next).map(([key, each]) => [key, each.trim()]),
    );
    timer.current = setTimeout(() => setAsked({ filters, cursors: [undefined] }), delay);
  };
  const change = (name, delay) => (value) => take({ ...typed, [name]: value }, delay);
  const changeAll = (changes) => take({ ...typed, ...changes }, 0);
  const turnTo = (cursors) => {
    setAsked(({ filters }) => ({ filters, cursors }));
    if (view === null) return;
    const values = { cursors: cursors.slice(1) };
    setAddress(view, queryOf(toAddress(asked.filters), cursors), { values });
  };
  return { typed, asked, change, changeAll, turnTo };
}

/** So that a view can be shared and come back to. */
function queryOf(filters, cursors) {
  const query = new URLSearchParams(Object.entries(filters).filter(([, value]) => value !== ''));
  const values = [String(cursors.length), cursors.at(-1)];
  if (cursors.length > 1) pageParameters.forEach((name, n) => query.set(name, values[n]));
  return query;
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
      return html`<${Field} key=${name} ...${withInstant(field)} value=${list.typed[name]} onInput=${onInput} />`;
    })}
    ${children}
  </div>`;

/** Times in filters are instants. The zone is named once, at the top of the page. */
const withInstant = (field) =>
  field.type === 'datetime-local' ? { ...field, type: 'instant', hint: '' } : field;

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
  // A page that was opened by its address has none before it that is known, except the first.
  const isKnown = cursors.at(-2) !== null;
  return html`<div class="row middle pages">
    <span class="soft" aria-live="polite">${texts.filter(Boolean).join(', ')}</span>
    ${
      cursors.length > 1 &&
      (isKnown ? button('Previous', cursors.slice(0, -1)) : button('First page', [undefined]))
    }
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
