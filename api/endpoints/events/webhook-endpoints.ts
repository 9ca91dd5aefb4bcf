import { agentFold, requireAgent, rotateWebhookSecret } from '../../../domain/agents/agent.ts';
import { handle } from '../../../domain/handle.ts';
import { streams } from '../../../domain/streams.ts';
import {
  repeatWebhookCommand,
  testWebhookCommand,
} from '../../../domain/webhooks/webhook-commands.ts';
import {
  resentWebhooks,
  webhooksOf,
  webhooksProjection,
} from '../../../projections/views/webhooks.ts';
import {
  WebhookDeliveryPage,
  WebhookSecret,
  WebhookSent,
} from '../../schemas/response-schemas-webhooks.ts';
import { DeliveryQuery, ResentQuery } from '../../schemas/webhook-schemas.ts';
import {
  createdId,
  endpoint,
  etag,
  idIn,
  success,
  type EndpointResponse,
  type Endpoint,
} from '../../endpoint.ts';
import { notFound } from '../../errors.ts';
import { cutPayload, listPage } from '../listing.ts';
import { namespaceAdmin } from '../../access/namespace-admins.ts';
import { administeredAgent } from '../lookup.ts';

const scopes = ['admin', namespaceAdmin] as const;

// Takes no Idempotency-Key, because its record would contain the response with the secret.
const newSecret = endpoint('POST /agents/:agent_id/webhook-secret', {
  operationId: 'rotateWebhookSecret',
  summary:
    "Gives an agent's webhook a new secret, shown only once; the old one also signs for another day",
  scopes,
  responses: { 200: WebhookSecret },
  responseHeaders: ['ETag'],
  async handle(call) {
    const { dependencies, context } = call;
    const { store, agents, webhookSecret } = dependencies;
    const id = await administeredAgent(call);
    const handled = await handle({
      store,
      stream: streams.agent(id),
      fold: agentFold,
      admit: (state) => {
        if (state.status !== 'registered') throw notFound('agent', id);
      },
      decide: rotateWebhookSecret,
      context,
    });
    agents.learn(id, handled);
    const { webhook_secret_version: version } = requireAgent(handled.state);
    const message = 'keep the secret: it is not shown again';
    return {
      body: { agent_id: id, webhook_secret: webhookSecret(id, version), version, message },
      headers: etag(handled.revision),
      position: handled.position,
    };
  },
});

const test = endpoint('POST /agents/:agent_id/webhook-test', {
  operationId: 'testWebhook',
  summary: "Sends a test message to an agent's webhook",
  scopes,
  idempotent: true,
  responses: { 202: WebhookSent },
  async handle(call) {
    const { dependencies, context } = call;
    const agentId = await administeredAgent(call);
    const id = createdId('webhook', call);
    const { position } = await testWebhookCommand(dependencies.store, id, agentId, context);
    return sent(agentId, id, 'the message is on its way', position);
  },
});

const list = endpoint('GET /agents/:agent_id/webhooks/deliveries', {
  operationId: 'listWebhookDeliveries',
  summary: "Lists the messages to an agent's webhook with its responses, newest first",
  scopes,
  query: DeliveryQuery,
  hasLargeResponse: true,
  reads: [webhooksProjection],
  responses: { 200: WebhookDeliveryPage },
  async handle(call) {
    const { dependencies, query } = call;
    const id = await administeredAgent(call);
    const asked = { ...webhooksOf(id, query), cut: cutPayload };
    return listPage(dependencies.readModel, webhooksProjection, asked, query, (each) => each);
  },
});

// Not for administrators of a namespace, because they may not see webhooks of agents with more
// scopes than they have.
const resent = endpoint('GET /webhooks/resent', {
  operationId: 'listResentWebhooks',
  summary: 'Lists the deliveries, of all agents, that were sent more than once, the latest first',
  scopes: ['admin'],
  query: ResentQuery,
  hasLargeResponse: true,
  reads: [webhooksProjection],
  responses: { 200: WebhookDeliveryPage },
  async handle({ dependencies, query, reach }) {
    const asked = { ...resentWebhooks(reach), cut: cutPayload };
    return listPage(dependencies.readModel, webhooksProjection, asked, query, (each) => each);
  },
});

const repeat = endpoint('POST /agents/:agent_id/webhooks/deliveries/:delivery_id/repeat', {
  operationId: 'redeliverWebhook',
  summary: 'Sends a delivered or failed message again, with the same id',
  scopes,
  idempotent: true,
  responses: { 202: WebhookSent },
  async handle(call) {
    const { dependencies, context } = call;
    const agentId = await administeredAgent(call);
    const id = idIn(call, 'delivery_id');
    const { position } = await repeatWebhookCommand(dependencies.store, id, agentId, context);
    return sent(agentId, id, 'the message is on its way again', position);
  },
});

export const webhookEndpoints: readonly Endpoint[] = [newSecret, test, list, resent, repeat];

function sent(
  agentId: string,
  deliveryId: string,
  message: string,
  position: EndpointResponse['position'],
): EndpointResponse {
  const details = { agent_id: agentId, delivery_id: deliveryId, state: 'pending' };
  return { ...success(message, details, position), status: 202 };
}
