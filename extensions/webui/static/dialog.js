// Asks before something is done: what exactly, and why.

import { button, h, notify } from './dom.js';

/** The reason of a command; it stands in the log and in the audit. */
export const reasonField = {
  name: 'reason',
  label: 'Why (goes into the log)',
  control: () => h('input', { maxlength: 500, autocomplete: 'off' }),
};

/**
 * Asks, and does it while the dialog is open: what fails is said in it, and can be tried again.
 * A field with `required` has to be filled in; that text says so.
 * @param {{title: string, text?: unknown, action: string, kind?: string,
 *   fields?: {name: string, label: string, hint?: string, required?: string, control: () => HTMLElement}[],
 *   act: (values: Record<string, string>) => Promise<unknown>, done?: string,
 *   preview?: {action: string, act: (values: Record<string, string>) => Promise<unknown>}}} options
 *   `preview` shows what would be done
 * @returns whether it was done
 */
export function ask({
  title,
  text,
  action,
  kind = '.main-action',
  fields = [],
  act,
  done,
  preview,
}) {
  const controls = new Map(fields.map(({ name, control }) => [name, control()]));
  const fault = h('p.fault', { role: 'alert' });
  const outcome = h('div', { 'aria-live': 'polite' });
  const submit = h(`button${kind}`, { type: 'submit' }, action);
  const valuesOf = () =>
    Object.fromEntries([...controls].map(([name, { value }]) => [name, value.trim()]));
  const told = async (work) => {
    fault.textContent = '';
    try {
      return await work(valuesOf());
    } catch (error) {
      const said = (error.issues ?? []).map(({ field, issue }) => `${field} ${issue}`).join('; ');
      fault.textContent = said === '' ? error.message : said;
      return fault;
    }
  };
  return new Promise((resolve) => {
    const dialog = h('dialog', { 'aria-label': title });
    const end = (went) => {
      dialog.close();
      dialog.remove();
      // What it was opened by may have been drawn anew meanwhile.
      if (document.activeElement === document.body) document.getElementById('content').focus();
      resolve(went);
    };
    const form = h(
      'form',
      {
        novalidate: true,
        async onsubmit(event) {
          event.preventDefault();
          const lacking = fields.find(({ name, required }) => required && valuesOf()[name] === '');
          if (lacking !== undefined) {
            fault.textContent = lacking.required;
            controls.get(lacking.name).focus();
            return;
          }
          submit.disabled = true;
          const answer = await told(act);
          submit.disabled = false;
          if (answer === fault) return;
          end(true);
          if (done !== undefined) notify(done);
        },
      },
      h('h2', {}, title),
      text && h('p', {}, text),
      fields.map(({ name, label, hint }) =>
        h('label.field', {}, label, controls.get(name), hint && h('span.hint', {}, hint)),
      ),
      outcome,
      fault,
      h(
        'div.row.end',
        {},
        button('Leave it', () => end(false)),
        preview !== undefined &&
          button(preview.action, async () => {
            const shown = await told(preview.act);
            if (shown !== fault) outcome.replaceChildren(shown);
          }),
        submit,
      ),
    );
    dialog.append(form);
    dialog.addEventListener('cancel', (event) => {
      event.preventDefault();
      end(false);
    });
    document.body.append(dialog);
    dialog.showModal();
    (controls.values().next().value ?? submit).focus();
  });
}
