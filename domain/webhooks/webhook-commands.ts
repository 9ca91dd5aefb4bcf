import { agentFold, requireAgent, updateAgent } from '../agents/agent.ts';
import { toIso } from '../clock.ts';
import { Refusal, notFound } from '../errors.ts';
import type { EventStore } from '../event-store.ts';
import { handle, load, type CommandContext, type Handled } from '../handle.ts';
import { streams } from '../streams.ts';
import { repeatWebhook, scheduleWebhook, webhookFold, type WebhookState } from './webhook.ts';
import { testMessage, type WebhookMessage } from './webhook-messages.ts';

/** Begins the delivery of a message to an agent. The same command begins the same one. */
export function scheduleWebhookCommand(
  store: EventStore,
  deliveryId: string,
  agentId: string,
  message: WebhookMessage,
  context: CommandContext,
): Promise<Handled<WebhookState>> {
  return handle({
    store,
    stream: streams.webhook(deliveryId),
    fold: webhookFold,
    decide: (state) => scheduleWebhook(state, { agent_id: agentId, ...message }),
    context,
  });
}

/**
 * Sends an agent's webhook a message that tells nothing.
 * @throws Refusal `NOT_FOUND` for an agent that is not there; `STATE_CONFLICT` for one without a webhook
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
    throw new Refusal('STATE_CONFLICT', message, { field: 'webhook_url' });
  }
  const stream = streams.webhook(deliveryId);
  const message = testMessage(agentId, toIso(context.now));
  const decide = (webhook: WebhookState): ReturnType<typeof scheduleWebhook> =>
    scheduleWebhook(webhook, message);
  return handle({ store, stream, fold: webhookFold, decide, context });
}

/**
 * Sends a delivery that has ended again, with the same id: a receiver that has it already knows it by that.
 * @throws Refusal `NOT_FOUND` for one that is not there, or is another agent's; `STATE_CONFLICT` for one under way
 */
export function repeatWebhookCommand(
  store: EventStore,
  deliveryId: string,
  agentId: string,
  context: CommandContext,
): Promise<Handled<WebhookState>> {
  return handle({
    store,
    stream: streams.webhook(deliveryId),
    fold: webhookFold,
    decide: (state) => {
      if (!('scheduled' in state) || state.scheduled.agent_id !== agentId) {
        throw notFound('webhook_delivery', deliveryId);
      }
      return repeatWebhook(state);
    },
    context,
  });
}

/** Takes a webhook that is gone from its agent; nothing where the agent has another by now. */
export async function takeWebhookAway(
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
