// The actions on an agent: change, disable, enable and remove it, and give it new secrets.

import { html } from '../../preact.js';
import { agentId, call, command, reasonHeader } from '../../client.js';
import { AskButton } from '../../ui/dialog.js';

/**
 * @param {() => Promise<void>} done called after a change
 * @param {(secret: {label: string, value: string}) => void} show shows a new secret, once
 */
export function AgentActions({ agent, done, show }) {
  const { id, webhook_url: webhook, disabled } = agent;
  const isOther = id !== agentId();
  const button = (text, dialog, kind) =>
    html`<${AskButton} text=${text} kind=${kind} dialog=${dialog} done=${done} />`;
  return html`<a class="button" href="#/agents/${id}/edit">Change</a>
    ${button('New secret …', newSecret(agent, show))}
    ${webhook !== null && button('Send a test message', test(agent))}
    ${webhook !== null && button('New webhook secret …', newWebhookSecret(agent, show))}
    ${isOther && (disabled === null ? button('Disable …', disable(agent), 'danger') : button('Enable …', enable(agent)))}
    ${isOther && html`<${AskButton} text="Remove …" kind="danger" dialog=${remove(agent)} />`}`;
}

/** Requests for secrets carry no Idempotency-Key, because the service would store the response. */
const post = (path, reason, body) => call('POST', path, { body, headers: reasonHeader(reason) });

const newSecret = ({ id, name }, show) => ({
  title: `Give ${name} a new secret?`,
  text: 'The old one stops working, and its sessions end. Its API keys stay.',
  action: 'Create the secret',
  act: async ({ reason }) => {
    const { agent_secret: value } = await post(`agents/${id}/credentials`, reason, {});
    show({ label: `The new secret of ${name}.`, value });
  },
});

const newWebhookSecret = ({ id, name }, show) => ({
  title: `Give the webhook of ${name} a new secret?`,
  text: 'Messages are signed with both secrets for a day.',
  action: 'Create the secret',
  act: async ({ reason }) => {
    const { webhook_secret: value } = await post(`agents/${id}/webhook-secret`, reason);
    show({ label: `The new secret of the webhook of ${name}.`, value });
  },
});

const test = ({ id, webhook_url: webhook }) => ({
  title: 'Send a test message?',
  text: `To ${webhook}. It has no content.`,
  action: 'Send',
  path: `agents/${id}/webhook-test`,
  done: 'The message is being sent.',
});

const disable = ({ id, name }) => ({
  title: `Disable ${name}?`,
  text: 'Its tokens and keys stop working within a second. Its tasks do not fire, and its workers get no jobs.',
  action: 'Disable',
  fields: [
    {
      name: 'runs',
      label: 'Its runs',
      value: 'finish',
      options: { finish: 'may finish', cancel: 'are canceled' },
    },
  ],
  path: `agents/${id}/disable`,
  queryOf: ({ runs }) => ({ runs }),
  done: `${name} is disabled.`,
});

const enable = ({ id, name }) => ({
  title: `Enable ${name}?`,
  text: 'It must log in again. Its API keys work again.',
  action: 'Enable',
  fields: [
    {
      name: 'missed',
      label: 'Missed fires to run',
      value: 'skip',
      options: { skip: 'none', latest: 'the latest of each task', all: 'all' },
    },
  ],
  path: `agents/${id}/enable`,
  queryOf: ({ missed }) => ({ missed }),
  done: `${name} is enabled.`,
});

const remove = ({ id, name }) => ({
  title: `Remove ${name}?`,
  text: 'This is permanent. To stop it for a while, disable it.',
  action: 'Remove',
  fields: [
    {
      name: 'tasks',
      label: 'Its tasks',
      value: '',
      options: { '': 'do not remove it if it has any', cancel: 'cancel them' },
    },
  ],
  act: async ({ reason, tasks }) => {
    const query = tasks === 'cancel' ? { cancel_tasks: true } : {};
    await command(`agents/${id}`, { method: 'DELETE', reason, query });
    location.hash = '#/agents';
  },
  done: `${name} was removed.`,
});
