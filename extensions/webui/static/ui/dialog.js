// Asks for details and a reason before something is done.

import { html, useLayoutEffect, useRef, useState } from '../preact.js';
import { useRemembered } from '../address.js';
import { command } from '../client.js';
import { notify, setState } from '../store.js';
import { Button } from './elements.js';
import { Field } from './field.js';

/** The reason of a command; it goes into the log and the audit. */
const reasonField = { name: 'reason', label: 'Why (goes into the log)', maxlength: 500 };

/**
 * Opens the dialog. It stays open until the action has succeeded, and shows why it failed.
 * @param {{title: string, text?: unknown, action: string, kind?: string, dismiss?: string, fields?: object[], act:
 *   (values: Record<string, string>, previewed: object | null) => Promise<unknown>, done?: string, preview?: (values:
 *   Record<string, string>) => Promise<{shown: unknown, action: string | null}>}} options `fields` as {@link Field}
 *   takes them, with a `name`; `required` is the message if one is empty. With `preview`, Enter only shows what would
 *   be done. The preview's `action` names the button that then does it; null if there is nothing to do
 * @returns {Promise<boolean>} whether it was done; false, too, if a person left the view
 */
export const ask = (options) =>
  new Promise((resolve) => setState({ dialog: { ...options, resolve, key: {} } }));

export function Dialog(options) {
  const { title, text, action, kind = 'main-action', dismiss = 'Cancel', fields = [] } = options;
  const { act, done, preview, resolve } = options;
  const dialog = useRef();
  // Going back to the view and opening the dialog again brings the typed text back.
  const [typed, setTyped, forget] = useRemembered(`dialog ${title}`, {});
  const values = Object.fromEntries(
    fields.map(({ name, value = '' }) => [name, typed[name] ?? value]),
  );
  const [fault, setFault] = useState('');
  const [previewed, setPreviewed] = useState(null);
  const [isBusy, setBusy] = useState(false);
  useLayoutEffect(() => {
    dialog.current.showModal();
    dialog.current.querySelector('input, select, textarea, [type=submit]').focus();
    // A navigation removes the dialog.
    return () => resolve(false);
  }, []);
  const close = (isDone) => {
    forget();
    resolve(isDone);
    // The command may have outlived the view.
    if (dialog.current === null) return;
    dialog.current.close();
    setState({ dialog: null });
  };
  /** @returns whether it succeeded */
  const run = async (work) => {
    if (isBusy) return false;
    setFault('');
    setBusy(true);
    const trimmed = Object.fromEntries(
      Object.entries(values).map(([key, each]) => [key, each.trim()]),
    );
    try {
      await work(trimmed);
      return true;
    } catch (error) {
      const issues = (error.issues ?? []).map(({ field, issue }) => `${field} ${issue}`).join('; ');
      setFault(issues || error.message);
      return false;
    } finally {
      setBusy(false);
    }
  };
  const finish = async () => {
    const missing = fields.find(({ name, required }) => required && values[name].trim() === '');
    if (missing !== undefined) setFault(missing.required);
    else if (await run((each) => act(each, previewed))) {
      close(true);
      if (done !== undefined) notify(done);
    } else {
      // Part of it may have been done, so it must be previewed again.
      setPreviewed(null);
    }
  };
  const submit = (event) => {
    event.preventDefault();
    if (preview === undefined) return finish();
    return run(async (each) => setPreviewed(await preview(each)));
  };
  const cancel = (event) => {
    event.preventDefault();
    close(false);
  };
  return html`<dialog ref=${dialog} aria-label=${title} onCancel=${cancel}>
    <form novalidate onSubmit=${submit}>
      <h2>${title}</h2>
      ${text && html`<p>${text}</p>`}
      ${fields.map(({ name, required: _required, ...field }) => {
        const onInput = (value) => {
          setTyped((before) => ({ ...before, [name]: value }));
          if (name !== reasonField.name) setPreviewed(null);
        };
        return html`<${Field} key=${name} ...${field} value=${values[name]} onInput=${onInput} />`;
      })}
      <div aria-live="polite">${previewed?.shown}</div>
      <p class="fault" role="alert">${fault}</p>
      <div class="row end">
        <${Button} onClick=${() => close(false)}>${dismiss}<//>
        ${preview && html`<button type="submit" aria-busy=${isBusy}>Preview</button>`}
        <button class=${kind} type=${preview ? 'button' : 'submit'} onClick=${preview && finish}
          aria-busy=${isBusy} disabled=${preview && !previewed?.action}>${previewed?.action ?? action}</button>
      </div>
    </form>
  </dialog>`;
}

/**
 * A button that asks first, and then sends a command.
 * @param dialog the options of {@link ask}, to which a field for the reason is added. Instead of `act`, the `path` of a
 *   command; `bodyOf` and `queryOf` are made from the values of the fields. `required` is the message if there is no
 *   reason
 * @param done called when it has succeeded
 */
export function AskButton({ text, kind = '', label, dialog, done }) {
  const open = () => askCommand({ text, kind, dialog, done });
  return html`<${Button} kind=${kind} label=${label} onClick=${open}>${text}<//>`;
}

/** Asks for confirmation, and then sends a command. The options are those of {@link AskButton}. */
export async function askCommand({ text, kind = '', dialog, done }) {
  const { path, bodyOf, queryOf, required, fields = [], ...options } = dialog;
  const act = ({ reason, ...values }) =>
    command(path, { reason, body: bodyOf?.(values), query: queryOf?.(values) });
  const danger = kind.includes('danger') ? { kind: 'danger', dismiss: 'Back' } : {};
  const all = [...fields, { ...reasonField, required }];
  if (await ask({ ...danger, action: text, act, ...options, fields: all })) await done?.();
}
