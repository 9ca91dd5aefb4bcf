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
import type { Failures } from '../../observability/telemetry.ts';
import type { EndpointResponse } from '../endpoint.ts';
import { HttpError, badRequest, errorBody, errorStatuses, toHttpError } from '../errors.ts';
import { CommandRenewal } from './command-renewal.ts';

const HEADER = 'Idempotency-Key';
const MAX_KEY_LENGTH = 200;
const POSITION = 'X-Event-Position';

/** How many keys of failed commands are remembered. */
const MAX_FAILED = 10_000;

/** @throws HttpError 400 for a key that is empty or too long */
export function checkKey(key: string | undefined): string | undefined {
  if (key === undefined) return undefined;
  if (key.length >= 1 && key.length <= MAX_KEY_LENGTH) return key;
  throw badRequest([{ field: HEADER, issue: `must have 1 to ${MAX_KEY_LENGTH} characters` }]);
}

/** The parts that a repeated request must have in common with the first one. */
export interface KeyedRequest {
  readonly agentId: string;
  readonly key: string;
  readonly method: string;
  /** The path, with its query. */
  readonly path: string;
  readonly body: unknown;
}

/** Runs commands once for their keys. */
export class IdempotencyKeys {
  readonly #store: EventStore;
  readonly #clock: Clock;
  readonly #failures: Failures;
  /** Streams of keys whose command this process is running. */
  readonly #running = new Set<string>();
  /**
   * Streams of keys whose command failed in this process without a response. Such a command may be repeated at once.
   */
  readonly #failed = new Set<string>();

  constructor(store: EventStore, clock: Clock, failures: Failures) {
    this.#store = store;
    this.#clock = clock;
    this.#failures = failures;
  }

  /**
   * Runs a command once for its key. The command is recorded first, and its response afterwards. After a crash in
   * between, a repetition runs it again with the same ids, which completes it. A rejection counts as a response.
   * Internal errors, lost races and responses too large for an event are not recorded.
   * @param run receives the command id that belongs to the key
   * @throws HttpError, RefusalError 409 when the key was used for another request, or the first is still running
   */
  async once(
    request: KeyedRequest,
    context: CommandContext,
    run: (commandId: string) => Promise<EndpointResponse>,
  ): Promise<EndpointResponse> {
    const { agentId, key, method, path } = request;
    const stream = streams.idempotency(agentId, key);
    const { state, revision } = await load(this.#store, stream, idempotencyFold);
    const expires_at = toIso(context.now + IDEMPOTENCY_LIFE);
    const received = { agent_id: agentId, request_hash: hashOf(request.body), method, path };
    const decision = receiveCommand(
      state,
      { ...received, expires_at },
      context.now,
      this.#knowledgeOf(stream),
    );
    if (decision.kind === 'replay') return replayed(decision.answer);
    // Each request has its own event id, so that the log rejects the second of two simultaneous
    // requests.
    const receivedEvents = (now: Instant): readonly NewEvent[] =>
      toNewEvents(stream, decision.events, { ...context, now, commandId: newId(now) });
    let receivedAt: number;
    try {
      receivedAt = await this.#append(stream, receivedEvents(context.now), revision);
    } catch (error) {
      if (isConflict(error)) throw stillRunning();
      this.#fail(stream);
      throw error;
    }
    this.#failed.delete(stream);
    const firstRevision = String(decision.began ?? receivedAt);
    const commandId = nameBasedId('command', agentId, key, firstRevision);
    this.#running.add(stream);
    const renewal = new CommandRenewal(
      {
        store: this.#store,
        clock: this.#clock,
        failures: this.#failures,
        stream,
        received: () => receivedEvents(this.#clock.now()),
      },
      receivedAt,
    );
    try {
      return await this.#runAndRecord(stream, renewal, { ...context, commandId }, run);
    } catch (error) {
      await renewal.end();
      if (!isFinal(error)) this.#fail(stream);
      throw error;
    } finally {
      this.#running.delete(stream);
    }
  }

  #knowledgeOf(stream: string): 'carried-out' | 'lost' | 'unknown' {
    if (this.#running.has(stream)) return 'carried-out';
    return this.#failed.has(stream) ? 'lost' : 'unknown';
  }

  /** Records a command. A stream that was truncated is empty, but continues its revisions. @returns the revision */
  async #append(
    stream: string,
    events: readonly NewEvent[],
    revision: ExpectedRevision,
  ): Promise<number> {
    try {
      return (await this.#store.append(stream, events, revision)).revision;
    } catch (error) {
      if (!isConflict(error) || revision !== 'none' || typeof error.actual !== 'number') {
        throw error;
      }
      const isEmpty = (await this.#store.readStream(stream, { limit: 1 })).length === 0;
      if (!isEmpty) throw error;
      return (await this.#store.append(stream, events, error.actual)).revision;
    }
  }

  async #runAndRecord(
    stream: string,
    renewal: CommandRenewal,
    context: CommandContext,
    run: (commandId: string) => Promise<EndpointResponse>,
  ): Promise<EndpointResponse> {
    const record = async (data: DataOf<'CommandAnswered'>): Promise<void> => {
      const receivedAt = await renewal.end();
      const commandId = nameBasedId('answered', context.commandId, String(receivedAt));
      const events = toNewEvents(stream, [{ type: 'CommandAnswered', data }], {
        ...context,
        commandId,
      });
      try {
        await this.#store.append(stream, events, receivedAt);
      } catch (error) {
        // The command is done. A repetition builds the response again, with the same ids.
        if (error instanceof EventStoreError && error.code === 'TOO_LARGE') this.#fail(stream);
        // Another process took the command over and did the same work.
        else if (!isConflict(error)) throw error;
      }
    };
    let response: EndpointResponse;
    try {
      response = await run(context.commandId);
    } catch (thrown) {
      const error = toHttpError(thrown);
      const status = errorStatuses[error.code];
      const body = errorBody(error, context.correlationId);
      if (isFinal(thrown)) await record({ status, body, headers: { ...error.headers } });
      throw thrown;
    }
    const { status = 200, body, position } = response;
    const headers = { ...response.headers, ...(position ? { [POSITION]: position } : {}) };
    await record({ status, body, headers });
    return response;
  }

  #fail(stream: string): void {
    this.#failed.add(stream);
    if (this.#failed.size <= MAX_FAILED) return;
    const [oldest] = this.#failed;
    if (oldest !== undefined) this.#failed.delete(oldest);
  }
}

/** Whether a repetition would fail in the same way. */
function isFinal(thrown: unknown): boolean {
  return errorStatuses[toHttpError(thrown).code] < 500 && !isConflict(thrown);
}

function stillRunning(): HttpError {
  const message = `the first command with this ${HEADER} is under way`;
  return new HttpError('conflict', message, { field: HEADER });
}

function replayed({ status, body, headers }: DataOf<'CommandAnswered'>): EndpointResponse {
  return {
    status,
    body,
    headers: { ...headers, 'Idempotent-Replayed': 'true' },
    position: headers[POSITION] ?? null,
  };
}

/** A hash of the body's value, independent of white space and of the order of its fields. */
function hashOf(body: unknown): string {
  return createHash('sha256')
    .update(JSON.stringify(body ?? null, withSortedFields))
    .digest('base64url');
}

function withSortedFields(_key: string, value: unknown): unknown {
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)));
}
