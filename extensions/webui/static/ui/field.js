// Fields of forms, filters and dialogs.

import { html, useId, useState } from '../preact.js';
import { isoOf, localField } from '../times.js';
import { shownZone } from '../zones.js';

/** Options as `[value, text]`. They are given as words, where `''` means any, or as texts by value. */
const optionsOf = (options) =>
  Array.isArray(options)
    ? options.map((word) => [word, word === '' ? 'any' : word.replaceAll('_', ' ')])
    : Object.entries(options);

/**
 * A control with its label. Other properties become attributes of the control.
 * @param {(value: string) => void} onInput
 * @param {'text' | 'number' | 'datetime-local' | 'instant' | 'search' | 'password' | 'textarea'} type an `instant` has
 *   a value in ISO 8601, which is shown and typed in the page's time zone
 * @param {string[] | Record<string, string>} options makes it a choice of these
 * @param hint shown below it; `fault`: what is wrong with its value
 */
export function Field({ id, label, value, onInput, type = 'text', options, hint, fault, ...rest }) {
  const own = useId();
  const name = id ?? own;
  const control = {
    autocomplete: 'off',
    spellcheck: false,
    ...rest,
    id: `field-${name}`,
    value,
    onInput: ({ target }) => onInput(target.value),
    'aria-describedby': `about-${name} fault-${name}`,
    'aria-invalid': fault ? 'true' : null,
  };
  return html`<div class="field">
    <label for=${control.id}>${label}</label>
    <${Control} type=${type} options=${options} control=${control} />
    <span class="hint" id="about-${name}">${hint ?? (type === 'instant' ? shownZone() : null)}</span>
    <span class="fault" id="fault-${name}">${fault}</span>
  </div>`;
}

function Control({ type, options, control }) {
  if (options !== undefined) {
    const texts = optionsOf(options);
    return html`<select ...${control}>
      ${texts.map(([key, text]) => html`<option value=${key}>${text}</option>`)}
    </select>`;
  }
  if (type === 'textarea') return html`<textarea ...${control}></textarea>`;
  if (type === 'instant') return html`<${InstantControl} control=${control} />`;
  return html`<input type=${type} step=${type === 'datetime-local' ? 1 : null} ...${control} />`;
}

/** The typed text stays while it means the same instant, because rewriting it would disturb the typing. */
function InstantControl({ control: { value, onInput, ...control } }) {
  const [typed, setTyped] = useState('');
  const isSame = typed !== '' && isoOf(typed) === value;
  const shown = isSame ? typed : fieldOf(value);
  const input = (event) => {
    setTyped(event.target.value);
    onInput({ target: { value: isoOf(event.target.value) } });
  };
  return html`<input type="datetime-local" step="1" ...${control} value=${shown} onInput=${input} />`;
}

/** Written as browsers do: without seconds if they are zero. */
const fieldOf = (iso) =>
  Number.isNaN(Date.parse(iso)) ? '' : localField(new Date(iso)).replace(/:00$/, '');
