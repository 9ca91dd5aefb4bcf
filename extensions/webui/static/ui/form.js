// Forms: the values of their fields, what is wrong with them, and how they are sent.

import { html, useRef, useState } from '../preact.js';
import { useRemembered } from '../address.js';
import { Field } from './field.js';

/**
 * The values of a form, and the service's errors by field. The browser's Back restores typed values that were not sent,
 * unless the initial values have changed since.
 * @param {Record<string, unknown>} initial
 * @param {(values: Record<string, unknown>) => Promise<unknown>} send may throw a refusal, whose issues go to the
 *   fields
 * @param {string[]} secrets the names of fields that the browser must not keep
 * @returns `values`, `faults`, `field(name)` with the properties of a field, `set(name, value)`, and the properties
 *   that {@link Form} takes
 */
export function useForm(initial, send, secrets = []) {
  const [base] = useState(initial);
  const [typed, remember, forget] = useRemembered(`form ${JSON.stringify(base)}`, {});
  const [hidden, hide] = useState({});
  const values = { ...base, ...typed, ...hidden };
  const [faults, setFaults] = useState({});
  const [problem, setProblem] = useState('');
  const [isBusy, setBusy] = useState(false);
  const element = useRef();
  const set = (name, value) => {
    const take = secrets.includes(name) ? hide : remember;
    take((before) => ({ ...before, [name]: value }));
    setFaults((before) => ({ ...before, [name]: undefined }));
  };
  const field = (name) => ({
    id: name.replaceAll('_', '-'),
    value: values[name],
    fault: faults[name],
    onInput: (value) => set(name, value),
  });
  const submit = async (event) => {
    event.preventDefault();
    if (isBusy) return;
    setBusy(true);
    setProblem('');
    setFaults({});
    // If sent values were restored, they could be sent twice.
    forget();
    try {
      await send(values);
    } catch (error) {
      remember(typed);
      const { known, others } = sorted(error.issues ?? [], values);
      setFaults(known);
      const isExplained = Object.keys(known).length > 0 && others === '';
      setProblem(isExplained ? '' : others || messageOf(error));
      setTimeout(() => element.current?.querySelector('[aria-invalid=true]')?.focus());
    }
    setBusy(false);
  };
  return { values, faults, field, set, submit, problem, isBusy, element };
}

const messageOf = ({ status, message }) =>
  status === 412 ? 'Somebody else has changed this in the meantime. Open it again.' : message;

/**
 * Issues by field, and those without a field of the form in one line. A field may hold only a part of a value that is
 * sent.
 */
function sorted(issues, values) {
  const known = {};
  const others = [];
  for (const { field, issue } of issues) {
    const parts = field.split('.');
    const name = parts.find((part) => part in values);
    if (name !== undefined) known[name] = name === parts.at(-1) ? issue : `${field} ${issue}`;
    else others.push(`${field} ${issue}`);
  }
  return { known, others: others.join('; ') };
}

/** A form with its buttons. @param back the address of "Cancel" */
export const Form = ({ form, action, back, children }) =>
  html`<form class="card form" novalidate ref=${form.element} onSubmit=${form.submit}>
    ${children}
    <p class="fault" role="alert">${form.problem}</p>
    <div class="row">
      <button class="main-action" type="submit" aria-busy=${form.isBusy}>${action}</button>
      <a class="button" href="#/${back}">Cancel</a>
    </div>
  </form>`;

/** The reason of a command; it goes into the log and the audit. */
export const ReasonField = ({ form }) =>
  html`<${Field} label="Why (goes into the log)" maxlength="500" ...${form.field('reason')} />`;
