// Forms with fields: their values, what is wrong with them, and how they are sent.

import { html, useRef, useState } from '../preact.js';
import { useRemembered } from '../address.js';
import { Field } from './field.js';

/**
 * The values of a form, and the errors of the service by field. What was typed and not sent comes back with the browser's
 * Back, unless what the form began with has changed since.
 * @param {Record<string, unknown>} initial
 * @param {(values: Record<string, unknown>) => Promise<unknown>} send may throw a refusal, whose issues go to the fields
 * @param {string[]} secrets the names of fields that no browser may keep
 * @returns `values`, `faults`, `field(name)` with the properties of a field, `set(name, value)`, and what {@link Form} takes
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
    // Sent values must not come back: they would be sent twice.
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
  status === 412 ? 'Somebody else has changed this meanwhile. Open it again.' : message;

/** Issues by the field that they belong to, and the others in one line. A field may be a part of what is sent. */
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
      <button class="main-action" type="submit" disabled=${form.isBusy}>${action}</button>
      <a class="button" href="#/${back}">Cancel</a>
    </div>
  </form>`;

/** The reason of a command; it goes into the log and the audit. */
export const ReasonField = ({ form }) =>
  html`<${Field} label="Why (goes into the log)" maxlength="500" ...${form.field('reason')} />`;
