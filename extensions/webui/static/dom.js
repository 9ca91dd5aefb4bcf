// Makes elements. Data becomes text and attributes, never markup.

import { writeJson } from './json-input.js';

/**
 * An HTML element.
 * @param {string} tag may carry classes: `p.soft`
 * @param {object} attributes `onclick` and the like are listeners; true, false and null: with, without the attribute
 * @param {...(Node | string | number | null | false | Array)} children
 */
export function h(tag, attributes = {}, ...children) {
  const [name, ...classes] = tag.split('.');
  const element = document.createElement(name);
  if (classes.length > 0) element.className = classes.join(' ');
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else if (key === 'value') element.value = value;
    else element.setAttribute(key, value === true ? '' : String(value));
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

/** What a pointer holds down: were it drawn anew meanwhile, letting go would be no click on it. */
let pressed = null;
/** What is to be drawn around it once it is let go. */
const waiting = new Map();

addEventListener(
  'pointerdown',
  ({ button: which, isPrimary, target }) => {
    // The list of a choice keeps to itself what happens to the pointer in it.
    if (which === 0 && isPrimary && target.closest('select') === null) pressed = target;
  },
  true,
);
addEventListener('pointerup', letGo, true);
addEventListener('pointercancel', letGo, true);
addEventListener('blur', letGo);

function letGo() {
  pressed = null;
  // The click comes right after.
  if (waiting.size > 0) setTimeout(drawWaiting);
}

function drawWaiting() {
  for (const [element, children] of [...waiting]) put(element, ...children);
}

/**
 * Puts children in the place of those that were there. What is drawn anew, as live views are all the time, does not take
 * the focus from who goes by keyboard: what is called as what had it has it again. Nor does it take the click from who
 * holds something of it down: then it is drawn once that is let go.
 */
export function put(element, ...children) {
  if (pressed !== null && element.contains(pressed)) {
    waiting.set(element, children);
    return element;
  }
  waiting.delete(element);
  const had = element.contains(document.activeElement) ? document.activeElement : null;
  // Of several that are called alike, nobody knows which it was.
  const name = had !== null && had !== element && calledAs(element, nameOf(had)).length === 1;
  element.replaceChildren();
  append(element, children);
  if (name) calledAs(element, nameOf(had))[0]?.focus({ preventScroll: true });
  return element;
}

const nameOf = (element) =>
  [element.tagName, element.getAttribute('aria-label') ?? element.textContent, element.href].join();

const calledAs = (place, name) =>
  [...place.querySelectorAll('a, button, summary')].filter((each) => nameOf(each) === name);

/** A column of numbers: they stand at its right. */
export const num = (text) => ({ text, kind: 'num' });
/** A column that a phone has no room for. */
export const minor = (text) => ({ text, kind: 'minor' });
/** A column that takes what room is left, and whose text may be long. */
export const wide = (text) => ({ text, kind: 'grow' });

/**
 * A table.
 * @param {string} caption what it lists, for screen readers
 * @param {(string | {text: string, kind: string})[]} columns
 * @param {Array[]} rows of cells
 * @param empty what stands there instead of a table without rows
 */
export function table(caption, columns, rows, empty = 'Nothing here.') {
  if (rows.length === 0) return typeof empty === 'string' ? nothing(empty) : empty;
  const kinds = columns.map((column) => column.kind ?? null);
  const head = columns.map((column, n) =>
    h('th', { scope: 'col', class: kinds[n] }, column.text ?? column),
  );
  const body = rows.map((cells) =>
    h(
      'tr',
      {},
      cells.map((cell, n) => h('td', { class: kinds[n] }, cell)),
    ),
  );
  return h(
    'div.wide',
    { tabindex: 0, role: 'region', 'aria-label': caption },
    h('table', { 'aria-label': caption }, h('thead', {}, h('tr', {}, head)), h('tbody', {}, body)),
  );
}

/** What stands where there is nothing to show, and what to do about it. */
export const nothing = (text, ...more) =>
  h('div.nothing', {}, h('p', {}, text), more.length > 0 && h('p.soft', {}, more));

/** What stands where something could not be read. @param {() => unknown} again tries it once more */
export function failure(error, again) {
  return h(
    'div.failure',
    { role: 'alert' },
    h('p', {}, error.message),
    again !== undefined && button('Try again', again),
  );
}

/** Name and value, one below the other. Pairs of null or false are left out. */
export const facts = (...pairs) =>
  h(
    'dl',
    {},
    pairs.map((pair) => pair && [h('dt', {}, pair[0]), h('dd', {}, pair[1] ?? '–')]),
  );

/** A part of a view, under a heading. @param aside what stands at the heading's right */
export const part = (title, ...children) => partWith(title, null, ...children);
export const partWith = (title, aside, ...children) =>
  h('section', {}, h('div.head', {}, h('h2', {}, title), aside), children);

/** The head of a view: its title, what is said beside it, and what can be done. */
export const heading = (title, beside, ...actions) =>
  h(
    'div.view-head',
    {},
    h('h1', {}, title),
    beside,
    actions.length > 0 && h('div.actions', {}, actions),
  );

/** A figure with what it counts. */
export const tile = (text, value, more, href) =>
  h(
    href === undefined ? 'div.tile' : 'a.tile',
    { href },
    h('span.soft', {}, text),
    h('strong', {}, value),
    more && h('span.soft', {}, more),
  );

/** JSON for people. */
export const json = (value, label = 'JSON') =>
  h('pre', { tabindex: 0, role: 'region', 'aria-label': label }, writeJson(value, 2));

/** Text as it is, in lines. */
export const lines = (text, label) =>
  h('pre', { tabindex: 0, role: 'region', 'aria-label': label }, text);

const tones = {
  good: 'active succeeded fired following healthy delivered ready completed done',
  bad: 'failed missed unhealthy halted refused only_before newer_schema',
  busy: 'running filling catching_up requested',
  wait: 'paused retrying queued waiting pending degraded opening snoozed on_hold',
};
const toneOf = new Map(
  Object.entries(tones).flatMap(([tone, words]) => words.split(' ').map((word) => [word, tone])),
);

toneOf.set('did not run', 'wait');

/** A state in its colour; the word itself says it too. */
export const state = (word) =>
  h('span', { class: `state ${toneOf.get(word) ?? 'idle'}`, 'data-state': word }, [
    word.replaceAll('_', ' '),
  ]);

/**
 * A button.
 * @param act is called on a click; the button does nothing more until it has ended, and keeps the focus. What fails is told
 */
export function button(text, act, kind = '', attributes = {}) {
  const element = h(`button${kind}`, { type: 'button', ...attributes }, text);
  const work = async () => {
    if (element.ariaBusy === 'true') return;
    element.ariaBusy = 'true';
    await attempt(act);
    element.ariaBusy = null;
  };
  element.addEventListener('click', () => void work());
  return element;
}

/** A field with its label. */
export const labelled = (text, control) => h('label', {}, text, control);

/** A choice; `''` stands for any. */
export const choice = (options, chosen, attributes = {}) =>
  h(
    'select',
    attributes,
    options.map((option) => {
      const [value, text] = Array.isArray(option) ? option : [option, option.replaceAll('_', ' ')];
      return h('option', { value, selected: value === chosen }, text);
    }),
  );

let noticeEnds;

/** Tells what has happened, to eyes and screen readers, for some seconds. */
export function notify(text) {
  const place = document.getElementById('notice');
  place.textContent = text;
  clearTimeout(noticeEnds);
  noticeEnds = setTimeout(() => (place.textContent = ''), 6000);
}

/** Does what a person asked for, and tells when it fails. @returns whether it went well */
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
