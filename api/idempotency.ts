import { createHash } from 'node:crypto';
import { toIso } from '../domain/clock.ts';
import type { DataOf } from '../domain/events/catalogue.ts';
import { isConflict, type EventStore } from '../domain/event-store.ts';
import { load, toNewEvents, type CommandContext } from '../domain/handle.ts';
import { IDEMPOTENCY_LIFE, idempotencyFold, receiveCommand } from '../domain/idempotency.ts';
import { nameBasedId } from '../domain/ids.ts';
import { streams } from '../domain/streams.ts';
import type { Answer } from './endpoint.ts';
import { HttpError, badRequest, errorBody, errorStatuses, toHttpError } from './errors.ts';

const HEADER = 'Idempotency-Key';
const LONGEST = 200;

/** The id of the command that a key stands for: whatever it creates has its id from there. */
export function commandIdOf(agentId: string, key: string): string {
  return nameBasedId('command', agentId, key);
}

/** @throws HttpError 400 for a key that is empty or too long */
export function checkKey(key: string | undefined): string | undefined {
  if (key === undefined) return undefined;
  if (key.length >= 1 && key.length <= LONGEST) return key;
  throw badRequest([{ field: HEADER, issue: `must have 1 to ${LONGEST} characters` }]);
}

/** A request as far as a repetition must be the same. */
export interface KeyedRequest {
  readonly agentId: string;
  readonly key: string;
  readonly method: string;
  /** With its query. */
  readonly path: string;
  readonly body: unknown;
}

/** Streams of keys whose command failed in this process without an answer: it may be repeated at once. */
const lost = new Set<string>();

/**
 * Carries a command out once for its key: it is remembered before, and its answer after. A crash between
 * leaves a command that is remembered and not answered: the repetition carries it out again with the
 * same ids, which completes it. A refusal is an answer too; faults of the service are not remembered.
 *
 * @throws HttpError, Refusal 409 when the key was used for something else or the first is under way
 */
export async function once(
  store: EventStore,
  request: KeyedRequest,
  context: CommandContext,
  carryOut: () => Promise<Answer>,
): Promise<Answer> {
  const stream = streams.idempotency(request.agentId, request.key);
  const { state, revision } = await load(store, stream, idempotencyFold);
  const received: DataOf<'CommandReceived'> = {
    agent_id: request.agentId,
    request_hash: hashOf(request.body),
    method: request.method,
    path: request.path,
    expires_at: toIso(context.now + IDEMPOTENCY_LIFE),
  };
  const decision = receiveCommand(state, received, context.now, lost.delete(stream));
  if (decision.kind === 'replay') return replayed(decision.answer);
  const begun = {
    ...context,
    commandId: nameBasedId('received', context.commandId, String(revision)),
  };
  try {
    await store.append(stream, toNewEvents(stream, decision.events, begun), revision);
  } catch (error) {
    if (!isConflict(error)) throw error;
    throw new HttpError('conflict', `the first command with this ${HEADER} is under way`, {
      field: HEADER,
    });
  }
  const expected = revision === 'none' ? 0 : revision + 1;
  const remember = async (answered: DataOf<'CommandAnswered'>): Promise<void> => {
    const commandId = nameBasedId('answered', context.commandId, String(revision));
    const events = [{ type: 'CommandAnswered' as const, data: answered }];
    const appended = toNewEvents(stream, events, { ...context, commandId });
    try {
      await store.append(stream, appended, expected);
    } catch (error) {
      // Another took the key up in the meantime, after this process seemed gone: it did the same.
      if (!isConflict(error)) throw error;
    }
  };
  try {
    const answer = await carryOut();
    await remember({ status: answer.status ?? 200, body: answer.body, headers: headersOf(answer) });
    return answer;
  } catch (thrown) {
    const error = toHttpError(thrown);
    const status = errorStatuses[error.code];
    if (status >= 500) lost.add(stream);
    else await remember({ status, body: errorBody(error, context.correlationId), headers: {} });
    throw thrown;
  }
}

function replayed(answer: DataOf<'CommandAnswered'>): Answer {
  return {
    status: answer.status,
    body: answer.body,
    headers: { ...answer.headers, 'Idempotent-Replayed': 'true' },
  };
}

function headersOf(answer: Answer): Record<string, string> {
  const position = answer.position;
  return { ...answer.headers, ...(position ? { 'X-Event-Position': position } : {}) };
}

function hashOf(body: unknown): string {
  return createHash('sha256')
    .update(JSON.stringify(body ?? null))
    .digest('base64url');
}
