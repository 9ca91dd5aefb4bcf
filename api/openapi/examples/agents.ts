import type { Examples } from '../examples.ts';
import { agentId, created, deliveryId, done, ended, keyId, page, runId, taskId } from './values.ts';

const agent = {
  id: agentId,
  name: 'reporting',
  scopes: ['tasks:read', 'tasks:write', 'runs:read'],
  webhook_url: 'https://reports.example/hook',
  disabled: null,
  created_at: created,
  updated_at: created,
};
const secret = 'b3f1c2a49d8e47c6a5f0e1d2c3b4a596';
const key = {
  id: keyId,
  agent_id: agentId,
  name: 'deploy',
  scopes: ['tasks:read', 'tasks:write'],
  created_at: created,
  created_by: agentId,
  created_by_name: 'shop',
  expires_at: null,
};
const tokens = {
  access_token: 'eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJ0eXBlIjoiYWNjZXNzIn0.c2lnbmF0dXJl',
  refresh_token: 'eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJ0eXBlIjoicmVmcmVzaCJ9.c2lnbmF0dXJl',
  token_type: 'bearer',
  expires_in: 3600,
  scope: 'tasks:read tasks:write runs:read',
};
const pageSession = {
  agent: { id: agentId, namespace: 'default', name: agent.name, scopes: agent.scopes },
  expires_at: ended,
  openid_connect: true,
};
const sent = (message: string) =>
  done(message, { agent_id: agentId, delivery_id: deliveryId, state: 'pending' });

const delivery = {
  id: deliveryId,
  agent_id: agentId,
  type: 'run.failed',
  event_id: null,
  task_id: taskId,
  run_id: runId,
  payload: { type: 'run.failed', timestamp: ended, data: { run_id: runId } },
  state: 'delivered',
  end: null,
  attempts: [
    {
      at: ended,
      attempt: 1,
      url: agent.webhook_url,
      secret_version: 1,
      status: 204,
      error: null,
      answer: null,
      took_ms: 87,
    },
  ],
  repeats: 0,
  created_at: ended,
  updated_at: ended,
  next_attempt_at: null,
  finished_at: ended,
};

export const agentExamples: Readonly<Record<string, Examples>> = {
  issueToken: {
    body: { agent_id: agentId, agent_secret: secret },
    responses: { 200: tokens },
  },
  requestOAuthToken: {
    body: {
      grant_type: 'client_credentials',
      client_id: agentId,
      client_secret: secret,
      resource: ['https://tasks.example/ext/mcp_http/mcp'],
    },
    responses: {
      200: tokens,
      400: {
        error: 'unsupported_grant_type',
        error_description: 'grant_type must be client_credentials or refresh_token',
      },
      401: {
        error: 'invalid_client',
        error_description: 'the agent is unknown, or the secret is wrong',
      },
    },
  },
  refreshToken: { body: { refresh_token: tokens.refresh_token }, responses: { 200: tokens } },
  revokeToken: {
    body: { token: tokens.access_token },
    responses: { 200: done('the token is no longer valid', {}) },
  },
  beginPageSession: {
    body: { agent_id: agentId, agent_secret: secret },
    responses: { 200: pageSession },
  },
  getPageSession: { responses: { 200: pageSession } },
  endPageSession: { responses: { 200: done('signed out', {}) } },
  beginSignIn: { responses: { 303: '<!doctype html><title>Sign in</title>' } },
  completeSignIn: {
    parameters: {
      code: 'Vr3n5mPdx8Qw',
      state: '2Jm8cS4vTq1k',
      iss: 'https://login.example',
      error: 'access_denied',
    },
    responses: { 200: '<!doctype html><title>Signed in</title>' },
  },
  createAgent: {
    body: { name: agent.name, scopes: agent.scopes, webhook_url: agent.webhook_url },
    responses: { 201: agent },
  },
  listAgents: { responses: { 200: [agent] } },
  getAgent: { responses: { 200: agent } },
  updateAgent: {
    body: { scopes: [...agent.scopes, 'events:publish'] },
    responses: {
      200: { ...agent, scopes: [...agent.scopes, 'events:publish'], updated_at: ended },
    },
  },
  deleteAgent: { responses: { 200: done('the agent is removed', { agent_id: agentId }) } },
  disableAgent: {
    responses: {
      200: {
        ...agent,
        disabled: { runs: 'finish', by: agentId, since: ended },
        updated_at: ended,
      },
    },
  },
  enableAgent: { responses: { 200: { ...agent, updated_at: ended } } },
  createApiKey: {
    body: { name: key.name, scopes: key.scopes },
    responses: {
      201: {
        ...key,
        last_used_at: null,
        key: 'svck_q2r0mX1bJ5W7d3T9vYk8eN6hLpZsAcUfGiOyQwRtBxM',
        message: 'store the key: it will not be shown again',
      },
    },
  },
  listExpiringKeys: {
    parameters: { until: ended },
    responses: {
      200: page({
        id: keyId,
        agent_id: agentId,
        name: 'deploy',
        expires_at: ended,
        last_used_at: created,
      }),
    },
  },
  listApiKeys: { responses: { 200: { items: [{ ...key, last_used_at: ended }] } } },
  revokeApiKey: {
    responses: { 200: done('the key is revoked', { agent_id: agentId, key_id: keyId }) },
  },
  setAgentCredentials: {
    body: { agent_secret: secret },
    responses: {
      200: { agent_id: agentId, agent_secret: secret, message: 'keep it: it is not shown again' },
    },
  },
  rotateWebhookSecret: {
    responses: {
      200: {
        agent_id: agentId,
        webhook_secret: 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD',
        version: 2,
        message: 'keep it: it is not shown again',
      },
    },
  },
  testWebhook: { responses: { 202: sent('the message is on its way') } },
  redeliverWebhook: { responses: { 202: sent('the message is sent again') } },
  listWebhookDeliveries: {
    parameters: { type: 'run.failed' },
    responses: { 200: page(delivery) },
  },
  listResentWebhooks: {
    responses: { 200: page({ ...delivery, repeats: 1, resent_at: ended }) },
  },
};
