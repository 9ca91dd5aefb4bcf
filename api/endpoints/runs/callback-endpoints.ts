import { keptResult } from '../../../domain/artifacts/keep-result.ts';
import { namespaceOf } from '../../../domain/namespaces/namespace.ts';
import { MAX_RESULT_BYTES, jsonBytes, toPlainJson } from '../../../domain/pipeline/json-size.ts';
import { MASK, type Secrets } from '../../../domain/pipeline/secrets.ts';
import { tokenHash } from '../../../domain/ids.ts';
import type { Resumption } from '../../../domain/runs/run-waits.ts';
import {
  endWaitCommand,
  requireOpenWait,
  withMaskedReason,
} from '../../../domain/runs/wait-commands.ts';
import {
  waitOfToken,
  waitsProjection,
  type WaitDocument,
} from '../../../projections/views/waits.ts';
import { CompleteCallback, FailCallback } from '../../schemas/approval-schemas.ts';
import { CallbackTaken } from '../../schemas/response-schemas-approvals.ts';
import {
  endpoint,
  idIn,
  success,
  type EndpointResponse,
  type Call,
  type Endpoint,
} from '../../endpoint.ts';
import { HttpError } from '../../errors.ts';
import { findWait, secretsOfRun } from './found-wait.ts';

const shared = {
  scopes: null,
  responses: { 200: CallbackTaken },
  refusals: ['not_found'],
} as const;

const complete = endpoint('POST /callbacks/:token', {
  ...shared,
  operationId: 'completeCallback',
  summary: 'Ends the wait of a step for its callback; the body becomes its result',
  description:
    'The token is the credential. It is part of `${callback.url}` of the step. The body is any JSON. Without a body, the result is null. A result over 256 KiB becomes an artifact. Only the first call counts. A call after the wait has ended gets 409 with `details.resumed_by`.',
  body: CompleteCallback,
  bodyOptional: true,
  handle: (call) =>
    answer(call, async (secrets, wait) => ({
      by: { kind: 'callback' },
      result: await resultOf(call, wait, secrets.mask(call.body ?? null)),
    })),
});

const fail = endpoint('POST /callbacks/:token/fail', {
  ...shared,
  operationId: 'failCallback',
  summary: 'Fails a step that waits for its callback',
  description:
    'This works like `POST /callbacks/{token}`. With `retryable`, the step is tried again with a new token, as often as its `max_retries` allows.',
  body: FailCallback,
  handle: (call) =>
    answer(call, async (secrets) => ({
      by: { kind: 'callback' },
      error: secrets.maskText(call.body.error),
      retryable: call.body.retryable ?? false,
    })),
});

export const callbackEndpoints: readonly Endpoint[] = [complete, fail];

type Calling = Pick<Call, 'dependencies' | 'parameters' | 'context'>;

/** A large body becomes an artifact only while the wait is open, so that a used token cannot fill the store. */
async function resultOf(
  { dependencies }: Calling,
  wait: WaitDocument,
  body: unknown,
): Promise<unknown> {
  const plain = toPlainJson(body);
  if (plain.bytes <= MAX_RESULT_BYTES || jsonBytes(body) <= MAX_RESULT_BYTES) return body;
  const { store, artifacts } = dependencies;
  await requireOpenWait(store, wait);
  const run = { id: wait.run_id, namespace: namespaceOf(wait) };
  return (await keptResult(artifacts, run, plain)).value;
}

/** @throws HttpError 404 for an unknown token; RefusalError `STATE_CONFLICT` after the wait's end */
async function answer(
  call: Calling,
  resumption: (secrets: Secrets, wait: WaitDocument) => Promise<Resumption>,
): Promise<EndpointResponse> {
  const { dependencies, context } = call;
  const token = idIn(call, 'token');
  const wait = await waitOf(call, token);
  const secrets = await secretsOfRun(dependencies, wait.run_id);
  secrets.hide(token);
  const masked = withMaskedReason(context, secrets);
  const end = await resumption(secrets, wait);
  const { position } = await endWaitCommand(dependencies.store, wait, end, masked);
  const { run_id, step } = wait;
  return success('the step continues', { run_id, step }, position);
}

/** 32 bytes in base64url. */
const TOKEN = /^[\w-]{43}$/;

async function waitOf({ dependencies }: Calling, token: string): Promise<WaitDocument> {
  const { readModel } = dependencies;
  const wait = TOKEN.test(token)
    ? await findWait(dependencies, async () => {
        const [found] = await readModel.find(waitsProjection, waitOfToken(tokenHash(token)));
        return found?.document;
      })
    : undefined;
  if (wait !== undefined) return wait;
  const details = { resource: 'callback', id: MASK };
  throw new HttpError('not_found', 'there is no callback with this token', details);
}
