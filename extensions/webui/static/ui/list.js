// Lists with filters, which stand in the page's address, read page by page.

import { html, useEffect, useRef, useState } from '../preact.js';
import { remembered, setAddress, useRemembered } from '../address.js';
import { isOutage } from '../client.js';
import { getState } from '../store.js';
import { counted, isoOf } from '../times.js';
import { Button, Table } from './elements.js';
import { Loaded } from './layout.js';
import { Field } from './field.js';
import { Updates, useUpdates } from './updates.js';

/** The delay between the last key and reading the list, in milliseconds. */
const TYPING_DELAY = 200;
/** Between two reads of a list. Milliseconds. */
const BEAT = 5000;

/** The value of a `datetime-local` field. Old addresses hold times in this form too. */
const WALL_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?$/;

/**
 * The values of the filters in the address, `''` for the rest. Times are instants, so an address means the same in
 * every time zone.
 */
export const filtersIn = (query, fields) =>
  Object.fromEntries(
    fields.map(({ name }) => {
      const value = query.get(name) ?? '';
      return [name, WALL_TIME.test(value) ? isoOf(value) : value];
    }),
  );

/** The parameters of the address that hold the page of a list. */
const pageParameters = ['page', 'cursor'];
const readPage = () => {
  const query = new URLSearchParams(getState().address.query);
  return { number: Number(query.get('page')) || 1, cursor: query.get('cursor') ?? undefined };
};

/** The cursors of the pages up to the present one; null for those that this browser does not know. */
function cursorsInAddress() {
  const { number, cursor } = readPage();
  if (cursor === undefined) return [undefined];
  const known = remembered('cursors');
  return known?.at(-1) === cursor
    ? [undefined, ...known]
    : [undefined, ...Array.from({ length: Math.max(0, number - 2) }, () => null), cursor];
}

/**
 * @param {string | null} view the address keeps its filters and page; null: only the browser's Back restores its page
 * @param {Record<string, string>} initial
 * @param toAddress converts the filters to those in the address. Default: unchanged
 * @returns `typed`: what the fields hold; `asked`: the filters in effect, trimmed, with the cursors of the pages;
 *   `change(name, delay)` returns a function that sets a filter after a delay in milliseconds; `changeAll(changes)`
 *   sets several at once; `turnTo(cursors)` goes to another page; `isSettled`: whether the typed filters are in effect
 */
export function useFilters(view, initial, toAddress = (filters) => filters) {
  const [typed, setTyped] = useState(initial);
  const [kept, keep] = useRemembered('cursors without address', [undefined]);
  const [asked, setAsked] = useState(() => ({
    filters: initial,
    cursors: view === null ? kept : cursorsInAddress(),
  }));
  const timer = useRef();
  const isFirst = useRef(true);
  useEffect(() => () => clearTimeout(timer.current), []);
  useEffect(() => {
    // The first cursors come from the address itself.
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
    if (view === null) return keep(cursors);
    const values = { cursors: cursors.slice(1) };
    setAddress(view, queryOf(toAddress(asked.filters), cursors), { values });
  };
  const isSettled = Object.entries(typed).every(
    ([key, each]) => each.trim() === asked.filters[key].trim(),
  );
  return { typed, asked, change, changeAll, turnTo, isSettled };
}

/** The query of the address. It makes a view shareable, and the browser's Back returns to it. */
function queryOf(filters, cursors) {
  const query = new URLSearchParams(Object.entries(filters).filter(([, value]) => value !== ''));
  const values = [String(cursors.length), cursors.at(-1)];
  if (cursors.length > 1) pageParameters.forEach((name, n) => query.set(name, values[n]));
  return query;
}

/**
 * A list that is kept up to date unless a person pauses it.
 * @param {(query: object, signal: AbortSignal) => Promise<{items: object[], total?: number, next_cursor: unknown}>}
 *   read gets the filters, the `cursor` of the page and, after a change, `after`: the position in the log that the list
 *   must include
 * @param options as {@link useUpdates} takes them
 * @returns what `useFilters` and `useUpdates` return; `matches`: whether the data belong to the filters as they are now.
 *   Only then may a command apply to everything that the list stands for
 */
export function useList(view, initial, read, { every = BEAT, pace } = {}) {
  const list = useFilters(view, initial);
  const { filters, cursors } = list.asked;
  const query = { ...filters, cursor: cursors.at(-1) };
  const load = async (signal, after) => {
    const page = await read({ ...query, after }, signal);
    return { ...page, filters, cursors };
  };
  const found = useUpdates(load, [list.asked], { every, pace });
  const matches = list.isSettled && found.data?.filters === filters;
  return { ...list, ...found, matches };
}

/** During an outage, the list keeps its data, marks itself as not live, and retries by itself. */
const withoutOutage = (list) =>
  list.data !== undefined && isOutage(list.error) ? { ...list, error: null } : list;

/**
 * @param {{name: string, label: string}[]} fields as {@link Field} takes them
 * @param {string} [label] distinguishes several of them in one view
 */
export const Filters = ({ list, fields, label, children }) =>
  html`<div class="row filters" role="search" aria-label=${label}>
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

/** `cursors` are those of the shown page, which is still the earlier one while another is being read. */
function Pages({ total, next_cursor: next, cursors, list, one, several }) {
  // The cursors of other filters lead nowhere.
  const { matches, turnTo } = list;
  const isOnly = cursors.length === 1 && next === null;
  const texts = [
    Number.isInteger(total) && counted(total, one, several),
    !isOnly && `page ${cursors.length}`,
  ];
  const button = (text, to) =>
    html`<${Button} kind="small" onClick=${() => matches && turnTo(to)}>${text}<//>`;
  // A page that was opened by its address has none before it that is known, except the first.
  const isKnown = cursors.at(-2) !== null;
  return html`<div class="row middle pages">
    <span class="soft" aria-live="polite">${texts.filter(Boolean).join(', ')}</span>
    ${
      cursors.length > 1 &&
      (isKnown ? button('Previous', cursors.slice(0, -1)) : button('First page', [undefined]))
    }
    ${next !== null && button('Next', [...cursors, next])}
    <${Updates} of=${list} />
  </div>`;
}
