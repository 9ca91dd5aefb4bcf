import { agentFold, requireAgent, updateAgent } from '../agents/agent.ts';
import { toIso } from '../clock.ts';
import { RefusalError, notFound } from '../errors.ts';
import type { EventStore } from '../event-store.ts';
import type { WebhookEvent } from '../events/catalogue.ts';
import { handle, load, type CommandContext, type Handled } from '../handle.ts';
import { streams } from '../streams.ts';
import { repeatWebhook, scheduleWebhook, webhookFold, type WebhookState } from './webhook.ts';
import { testMessage, type WebhookMessage } from './webhook-messages.ts';

/** Schedules the delivery of a message to an agent. Repeating the command schedules no second one. */
export function scheduleWebhookCommand(
  store: EventStore,
  deliveryId: string,
  agentId: string,
  message: WebhookMessage,
  context: CommandContext,
): Promise<Handled<WebhookState>> {
  const scheduled = { agent_id: agentId, ...message };
  return onDelivery(store, deliveryId, context, (state) => scheduleWebhook(state, scheduled));
}

/**
 * Sends an agent's webhook a test message.
 * @throws RefusalError `NOT_FOUND` for an unknown agent; `STATE_CONFLICT` for an agent without a webhook
 */
export async function testWebhookCommand(
  store: EventStore,
  deliveryId: string,
  agentId: string,
  context: CommandContext,
): Promise<Handled<WebhookState>> {
  const { state } = await load(store, streams.agent(agentId), agentFold);
  if (state.status !== 'registered') throw notFound('agent', agentId);
  if (state.webhook_url === null) {
    const message = 'the agent has no webhook_url';
    throw new RefusalError('STATE_CONFLICT', message, { field: 'webhook_url' });
  }
  const message = testMessage(agentId, state.namespace, toIso(context.now));
  return onDelivery(store, deliveryId, context, (webhook) => scheduleWebhook(webhook, message));
}

/**
 * Repeats a delivery that has ended, with the same id, by which a receiver recognises it.
 * @throws RefusalError `NOT_FOUND` for an unknown delivery, or another agent's; `STATE_CONFLICT` for one in progress
 */
export function repeatWebhookCommand(
  store: EventStore,
  deliveryId: string,
  agentId: string,
  context: CommandContext,
): Promise<Handled<WebhookState>> {
  return onDelivery(store, deliveryId, context, (state) => {
    if (!('scheduled' in state) || state.scheduled.agent_id !== agentId) {
      throw notFound('webhook_delivery', deliveryId);
    }
    return repeatWebhook(state);
  });
}

/** Removes an agent's webhook URL, unless the agent has another one by now. */
export async function removeWebhookUrl(
  store: EventStore,
  agentId: string,
  url: string,
  context: CommandContext,
): Promise<void> {
  await handle({
    store,
    stream: streams.agent(agentId),
    fold: agentFold,
    decide: (state) =>
      state.status === 'registered' && state.webhook_url === url
        ? updateAgent(requireAgent(state), { webhook_url: null })
        : [],
    context,
  });
}

function onDelivery(
  store: EventStore,
  deliveryId: string,
  context: CommandContext,
  decide: (state: WebhookState) => readonly WebhookEvent[],
): Promise<Handled<WebhookState>> {
  const stream = streams.webhook(deliveryId);
  return handle({ store, stream, fold: webhookFold, decide, context });
}
