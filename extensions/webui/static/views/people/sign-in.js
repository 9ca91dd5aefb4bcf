// Logging in with an agent's id and secret, or at an identity provider.

import { html, useLayoutEffect, useRef, useState } from '../../preact.js';
import { personalSignIn, signIn } from '../../client.js';
import { learnAgents } from '../../names.js';
import { attempt, getState, useStore } from '../../store.js';
import { Heading } from '../../ui/layout.js';
import { Field } from '../../ui/field.js';

export function SignIn() {
  const [id, setId] = useState('');
  const [secret, setSecret] = useState('');
  const [fault, setFault] = useState(getState().signedOut);
  const [isBusy, setBusy] = useState(false);
  const hasPersonal = useStore((state) => state.hasPersonal);
  const form = useRef();
  useLayoutEffect(() => form.current.querySelector('input').focus(), []);
  const submit = async (event) => {
    event.preventDefault();
    if (isBusy) return;
    setBusy(true);
    setFault('');
    try {
      await signIn(id.trim(), secret);
    } catch (error) {
      setFault(error.message);
      setBusy(false);
      return;
    }
    await attempt(learnAgents);
  };
  return html`<div class="narrow">
    ${
      hasPersonal &&
      html`<p class="card"><a class="button main-action" href=${personalSignIn()}>Log in with your account</a></p>`
    }
    <form class="card" ref=${form} onSubmit=${submit}>
      <${Heading} title="Log in" />
      <${Field} label="Agent ID" value=${id} onInput=${setId} name="agent_id" required
        autocomplete="username" />
      <${Field} label="Secret" value=${secret} onInput=${setSecret} name="agent_secret" type="password"
        autocomplete="current-password" />
      <p class="fault" role="alert">${fault}</p>
      <button class="main-action" type="submit" aria-busy=${isBusy}>Log in</button>
      <p class="hint">
        The first agent’s ID and secret are in <code>admin-credentials.json</code> in the data directory.
      </p>
    </form>
  </div>`;
}
