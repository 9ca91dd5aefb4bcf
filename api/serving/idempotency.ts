import { createHash } from 'node:crypto';
import { toIso, type Clock, type Instant } from '../../domain/clock.ts';
import type { DataOf } from '../../domain/events/catalogue.ts';
import {
  EventStoreError,
  isConflict,
  type EventStore,
  type ExpectedRevision,
  type NewEvent,
} from '../../domain/event-store.ts';
import { load, toNewEvents, type CommandContext } from '../../domain/handle.ts';
import { IDEMPOTENCY_LIFE, idempotencyFold, receiveCommand } from '../../domain/idempotency.ts';
import { nameBasedId, newId } from '../../domain/ids.ts';
import { isJsonObject } from '../../domain/json.ts';
import { streams } from '../../domain/streams.ts';
import type { Log } from '../../observability/telemetry.ts';
import type { Answer } from '../endpoint.ts';
import { HttpError, badRequest, errorBody, errorStatuses, toHttpError } from '../errors.ts';
import { CommandUnderWay } from './command-under-way.ts';

const HEADER = 'Idempotency-Key';
const LONGEST = 200;
const POSITION = 'X-Event-Position';

/** Keys that are remembered as lost at a time, at most. */
const MOST_LOST = 10_000;

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

/** Carries commands out once for their keys. */
export class IdempotencyKeys {
  private readonly store: EventStore;
  private readonly clock: Clock;
  private readonly log: Log;
  /** Streams of keys whose command this process carries out. */
  private readonly carriedOut = new Set<string>();
  /** Streams of keys whose command failed in this process without an answer: it may be repeated at once. */
  private readonly lost = new Set<string>();

  constructor(store: EventStore, clock: Clock, log: Log) {
    this.store = store;
    this.clock = clock;
    this.log = log;
  }

  /**
   * Carries a command out once for its key: it is remembered before, and its answer after. A crash between
   * leaves a command that is remembered and not answered: the repetition carries it out again with the
   * same ids, which completes it. A refusal is an answer too; faults of the service are not remembered, nor is that others
   * were faster each time, nor an answer that is too large for an event.
   *
   * @param carryOut gets the id of the command that the key stands for: what it creates has its id from there
   * @throws HttpError, Refusal 409 when the key was used for something else or the first is under way
   */
  async once(
    request: KeyedRequest,
    context: CommandContext,
    carryOut: (commandId: string) => Promise<Answer>,
  ): Promise<Answer> {
    const stream = streams.idempotency(request.agentId, request.key);
    const { state, revision } = await load(this.store, stream, idempotencyFold);
    const received: DataOf<'CommandReceived'> = {
      agent_id: request.agentId,
      request_hash: hashOf(request.body),
      method: request.method,
      path: request.path,
      expires_at: toIso(context.now + IDEMPOTENCY_LIFE),
    };
    const decision = receiveCommand(state, received, context.now, this.known(stream));
    if (decision.kind === 'replay') return replayed(decision.answer);
    // An id of its own: of two that come at once, the log takes one and tells the other that it came second.
    const begun = (now: Instant): readonly NewEvent[] =>
      toNewEvents(stream, decision.events, { ...context, now, commandId: newId(now) });
    let receivedAt: number;
    try {
      receivedAt = await this.begin(stream, begun(context.now), revision);
    } catch (error) {
      if (isConflict(error)) throw commandGoesOn();
      this.lose(stream);
      throw error;
    }
    this.lost.delete(stream);
    const { agentId, key } = request;
    const life = String(decision.began ?? receivedAt);
    const commandId = nameBasedId('command', agentId, key, life);
    this.carriedOut.add(stream);
    const { store, clock, log } = this;
    const parts = { store, clock, log, stream, received: () => begun(clock.now()) };
    const underWay = new CommandUnderWay(parts, receivedAt);
    try {
      return await this.answer(stream, underWay, { ...context, commandId }, carryOut);
    } catch (error) {
      await underWay.end();
      if (!isAnswer(error)) this.lose(stream);
      throw error;
    } finally {
      this.carriedOut.delete(stream);
    }
  }

  private known(stream: string): 'carried-out' | 'lost' | 'unknown' {
    if (this.carriedOut.has(stream)) return 'carried-out';
    return this.lost.has(stream) ? 'lost' : 'unknown';
  }

  /**
   * Appends what begins a key's life. A stream whose former life was taken out of the log is empty, and goes on
   * counting where that ended.
   * @returns the revision of the event
   */
  private async begin(
    stream: string,
    begun: readonly NewEvent[],
    revision: ExpectedRevision,
  ): Promise<number> {
    try {
      return (await this.store.append(stream, begun, revision)).revision;
    } catch (error) {
      if (!isConflict(error) || revision !== 'none' || typeof error.actual !== 'number')
        throw error;
      const isEmpty = (await this.store.readStream(stream, { limit: 1 })).length === 0;
      if (!isEmpty) throw error;
      return (await this.store.append(stream, begun, error.actual)).revision;
    }
  }

  private async answer(
    stream: string,
    underWay: CommandUnderWay,
    context: CommandContext,
    carryOut: (commandId: string) => Promise<Answer>,
  ): Promise<Answer> {
    const remember = async (answered: DataOf<'CommandAnswered'>): Promise<void> => {
      const receivedAt = await underWay.end();
      const commandId = nameBasedId('answered', context.commandId, String(receivedAt));
      const events = [{ type: 'CommandAnswered' as const, data: answered }];
      const appended = toNewEvents(stream, events, { ...context, commandId });
      try {
        await this.store.append(stream, appended, receivedAt);
      } catch (error) {
        // It is carried out: a repetition answers anew, with the same ids.
        if (error instanceof EventStoreError && error.code === 'TOO_LARGE') this.lose(stream);
        // Another took the key up in the meantime, after this process seemed gone: it did the same.
        else if (!isConflict(error)) throw error;
      }
    };
    let answer: Answer;
    try {
      answer = await carryOut(context.commandId);
    } catch (thrown) {
      const error = toHttpError(thrown);
      const status = errorStatuses[error.code];
      const body = errorBody(error, context.correlationId);
      if (isAnswer(thrown)) await remember({ status, body, headers: { ...error.headers } });
      throw thrown;
    }
    await remember({ status: answer.status ?? 200, body: answer.body, headers: headersOf(answer) });
    return answer;
  }

  private lose(stream: string): void {
    this.lost.add(stream);
    if (this.lost.size <= MOST_LOST) return;
    const [oldest] = this.lost;
    if (oldest !== undefined) this.lost.delete(oldest);
  }
}

/** Whether a repetition would meet the same. */
function isAnswer(thrown: unknown): boolean {
  return errorStatuses[toHttpError(thrown).code] < 500 && !isConflict(thrown);
}

function commandGoesOn(): HttpError {
  return new HttpError('conflict', `the first command with this ${HEADER} is under way`, {
    field: HEADER,
  });
}

function replayed({ status, body, headers }: DataOf<'CommandAnswered'>): Answer {
  return {
    status,
    body,
    headers: { ...headers, 'Idempotent-Replayed': 'true' },
    position: headers[POSITION] ?? null,
  };
}

function headersOf(answer: Answer): Record<string, string> {
  const position = answer.position;
  return { ...answer.headers, ...(position ? { [POSITION]: position } : {}) };
}

/** Of what the body says: however it is spaced, and in whichever order its fields stand. */
function hashOf(body: unknown): string {
  return createHash('sha256')
    .update(JSON.stringify(body ?? null, inOrder))
    .digest('base64url');
}

function inOrder(_key: string, value: unknown): unknown {
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)));
}
