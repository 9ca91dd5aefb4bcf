// Fields of forms, filters and dialogs.

import { html, useId } from '../preact.js';

/** An option `['value', 'text']`, or a word that is both. `''` stands for any. */
const optionOf = (option) =>
  Array.isArray(option) ? option : [option, option === '' ? 'any' : option.replaceAll('_', ' ')];

/**
 * A control with its label.
 * @param {(value: string) => void} onInput
 * @param {'text' | 'number' | 'datetime-local' | 'search' | 'password' | 'textarea'} type
 * @param options makes it a choice of these
 * @param hint said below it; `fault`: what is wrong with its value
 */
export function Field({
  id,
  label,
  value,
  onInput,
  type = 'text',
  options,
  hint,
  fault,
  ...attributes
}) {
  const own = useId();
  const name = id ?? own;
  const control = {
    autocomplete: 'off',
    spellcheck: false,
    ...attributes,
    id: `field-${name}`,
    value,
    onInput: ({ target }) => onInput(target.value),
    'aria-describedby': `about-${name} fault-${name}`,
    'aria-invalid': fault ? 'true' : null,
  };
  return html`<div class="field">
    <label for=${control.id}>${label}</label>
    ${
      options !== undefined
        ? html`<select ...${control}>
          ${options.map(optionOf).map(([key, text]) => html`<option value=${key}>${text}</option>`)}
        </select>`
        : type === 'textarea'
          ? html`<textarea ...${control}></textarea>`
          : html`<input type=${type} step=${type === 'datetime-local' ? 1 : null} ...${control} />`
    }
    <span class="hint" id="about-${name}">${hint}</span>
    <span class="fault" id="fault-${name}">${fault}</span>
  </div>`;
}
