import type { ApiClient, ReceivedResponse } from '../../support/api-client.ts';
import type { WorkerWorld } from '../worker/worker-world.ts';

/** An agent with its credentials, signed in. */
export interface SignedInAgent {
  readonly id: string;
  readonly secret: string;
  readonly client: ApiClient;
}

let made = 0;

/** Registers an agent with some scopes, and signs it in. */
export async function signIn(
  { admin }: WorkerWorld,
  scopes: readonly string[],
  fields: object = {},
): Promise<SignedInAgent> {
  const name = `agent ${(made += 1)}`;
  const id = (await admin.post('/agents', { name, scopes, ...fields })).textAt('id');
  const secret = (await admin.post(`/agents/${id}/credentials`, {})).textAt('agent_secret');
  const answer = await admin.post('/agents/auth/token', { agent_id: id, agent_secret: secret });
  return { id, secret, client: admin.as(answer.textAt('access_token')) };
}

/** A task that is only run manually. */
export const taskOf = (owner: string, ...pipeline: readonly object[]) => ({
  title: 'work',
  description: 'of an agent',
  created_by: owner,
  max_retries: 0,
  schedule_kind: 'event',
  schedule_expr: 'never.published',
  payload: { pipeline },
});

/** An attempt as `METHOD /path`, with an optional body. */
export type Attempt = readonly [request: string, body?: object];

/** Sends attempts one after the other. @returns the responses by attempt, with its number */
export async function attemptAll(
  client: ApiClient,
  attempts: readonly Attempt[],
): Promise<ReadonlyMap<string, ReceivedResponse>> {
  const answers = new Map<string, ReceivedResponse>();
  for (const [index, [request, body]] of attempts.entries()) {
    const [method = '', path = ''] = request.split(' ');
    const asked = body === undefined ? {} : { body };
    answers.set(`${index}: ${request}`, await client.send(method, path, asked));
  }
  return answers;
}

/** The responses with an unexpected status, for the message of a failing test. */
export const unexpected = (
  answers: ReadonlyMap<string, ReceivedResponse>,
  statuses: readonly number[],
): readonly string[] =>
  [...answers]
    .filter(([, { status }]) => !statuses.includes(status))
    .map(([request, { status, text }]) => `${request}: ${status} ${text.slice(0, 200)}`);
