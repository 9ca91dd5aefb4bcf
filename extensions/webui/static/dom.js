// Makes elements. Data becomes text and attributes, never markup.

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
  return filled(element, attributes, children);
}

/** An SVG element. */
export function s(tag, attributes = {}, ...children) {
  return filled(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);
}

function filled(element, attributes, children) {
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

/** Puts children in the place of those that were there. */
export function put(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

/** A table; its rows are arrays of cells. */
export function table(caption, heads, rows, empty = 'Nothing here.') {
  if (rows.length === 0) return h('p.soft', {}, empty);
  const head = h(
    'tr',
    {},
    heads.map((text) => h('th', { scope: 'col' }, text)),
  );
  const body = rows.map((cells) =>
    h(
      'tr',
      {},
      cells.map((cell) => h('td', {}, cell)),
    ),
  );
  return h(
    'div.wide',
    { tabindex: 0, role: 'region', 'aria-label': caption },
    h('table', { 'aria-label': caption }, h('thead', {}, head), h('tbody', {}, body)),
  );
}

/** Name and value, one below the other. Pairs of null are left out. */
export const facts = (...pairs) =>
  h(
    'dl',
    {},
    pairs.map((pair) => pair && [h('dt', {}, pair[0]), h('dd', {}, pair[1] ?? '–')]),
  );

/** A part of a view, under a heading. */
export const part = (title, ...children) => h('section', {}, h('h2', {}, title), children);

/** JSON for people. */
export const json = (value, label = 'JSON') =>
  h('pre', { tabindex: 0, role: 'region', 'aria-label': label }, JSON.stringify(value, null, 2));

/** A state in its colour; the word itself says it too. */
export const state = (word) => h(`span.state.${word}`, {}, word.replaceAll('_', ' '));

/** A button. @param act is called on a click; the button is out of use until it has ended */
export function button(text, act, kind = '') {
  const element = h(`button${kind}`, { type: 'button' }, text);
  element.addEventListener('click', async () => {
    element.disabled = true;
    try {
      await act();
    } finally {
      element.disabled = false;
    }
  });
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
      const [value, text] = Array.isArray(option) ? option : [option, option];
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
    notify(error.message);
    return false;
  }
}
