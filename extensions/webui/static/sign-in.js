// Logging in with an agent's id and secret.

import { signIn } from './client.js';
import { h, put } from './dom.js';

/**
 * @param {HTMLElement} content where it is shown
 * @param {string} why somebody has to log in again, or `''`
 * @param {() => Promise<void>} done called when somebody is logged in
 */
export function showSignIn(content, why, done) {
  const fault = h('p.fault', { role: 'alert', id: 'sign-in-fault' }, why);
  const id = h('input', {
    ...{ name: 'agent_id', autocomplete: 'username', required: true, spellcheck: 'false' },
    'aria-describedby': 'sign-in-fault',
  });
  const secret = h('input', {
    ...{ name: 'agent_secret', type: 'password', autocomplete: 'current-password' },
    'aria-describedby': 'sign-in-fault',
  });
  const submit = h('button.main-action', { type: 'submit' }, 'Log in');
  const form = h(
    'form.card',
    {
      async onsubmit(event) {
        event.preventDefault();
        submit.disabled = true;
        fault.textContent = '';
        try {
          await signIn(id.value.trim(), secret.value);
          await done();
        } catch (error) {
          fault.textContent = error.message;
        } finally {
          submit.disabled = false;
        }
      },
    },
    h('h1', {}, 'Log in'),
    h('label.field', {}, "The agent's id", id),
    h('label.field', {}, 'Its secret', secret),
    fault,
    submit,
    h(
      'p.hint',
      {},
      'The first agent’s id and secret stand in ',
      h('code', {}, 'admin-credentials.json'),
      ' in the data directory. The token stays in the memory of this page: it is gone when you close it.',
    ),
  );
  put(content, h('div.narrow', {}, form));
  id.focus();
}
