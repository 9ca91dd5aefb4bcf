import type { Examples } from '../examples.ts';
import { created, done, ended, page, runId, taskId } from './values.ts';

const expires = '2027-02-20T08:00:00.000Z';

const secret = {
  name: 'API_TOKEN',
  namespace: 'default',
  version: 2,
  allow_hosts: ['api.example.com:443'],
  allow_tasks: null,
  expires_at: expires,
  key_id: '9f2c41d07ab35e68',
  created_at: created,
  updated_at: ended,
  last_used: { at: ended, version: 2, task_id: taskId, run_id: runId },
};
const parameters = { name: secret.name };

export const secretExamples: Readonly<Record<string, Examples>> = {
  setSecret: {
    parameters,
    body: { value: 's3cr3t-t0ken', allow_hosts: secret.allow_hosts, expires_at: expires },
    responses: {
      200: secret,
      201: { ...secret, version: 1, updated_at: created, last_used: null },
    },
  },
  listSecrets: { responses: { 200: page(secret) } },
  getSecret: { parameters, responses: { 200: secret } },
  deleteSecret: {
    parameters,
    responses: {
      200: done('the secret is deleted', { name: secret.name, namespace: secret.namespace }),
    },
  },
  rotateSecretsKey: {
    responses: {
      200: { key_id: 'c05d7e8812f4a369', generated: true, resealed: 12, unopened: [] },
    },
  },
};
