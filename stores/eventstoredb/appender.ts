import type { AppendResult as Answer } from '@eventstore/db-client';
import {
  EventStoreError,
  type AppendResult,
  type EncodedEvent,
  type ExpectedRevision,
  type Position,
} from '../../domain/event-store.ts';
import { pause, pauseAfter } from '../waiting.ts';
import { AppendCalls } from './appending/append-calls.ts';
import type { Append } from './appending/batch-request.ts';
import {
  actualRevisionOf,
  conflictError,
  classifyError,
  toEventStoreError,
  describeError,
  isConnectionFailure,
} from './connecting/client-errors.ts';
import { failureOf, requireUsable } from './connecting/condition.ts';
import type { LogParts } from './log-parts.ts';
import { isKnown, toPosition } from './position.ts';
import type { ClientEvent } from './client-event.ts';
import { waitUntilVisible } from './stream-visibility.ts';

/** Events per read from the end of a stream, when looking for ids that may have arrived. */
const TAIL_EVENTS = 200;

/** The most such reads. A topic has fewer publications during the longest append. */
const MAX_TAIL_PAGES = 250;

/** The last attempt may take this long, however little time is left. */
const MIN_ATTEMPT_MS = 500;

/** The longest time that a failed append waits for the reason. Milliseconds. */
const LOOK_MS = 1_000;

/** An append in progress. */
interface PendingAppend extends Append {
  /** The furthest position known before the first attempt. */
  readonly before: Position;
}

/** Concurrent calls of one append in this process. All answers but the first are duplicates. */
interface RepeatedAppend {
  running: number;
  answered: boolean;
}

/** Appends until the outcome is known: repeats unclear attempts, and inspects the stream after a conflict. */
export class Appender {
  readonly #log: LogParts;
  readonly #calls: AppendCalls;
  readonly #repeated = new Map<string, RepeatedAppend>();
  readonly #running = new Set<Promise<unknown>>();
  #closed = false;

  constructor(log: LogParts) {
    this.#log = log;
    this.#calls = new AppendCalls(log);
  }

  /** See the port's `append`; the events are serialised already. */
  async append(
    stream: string,
    events: readonly EncodedEvent[],
    expected: ExpectedRevision,
  ): Promise<AppendResult> {
    if (this.#closed) throw new EventStoreError('UNAVAILABLE', 'the event log is closed');
    const { telemetry, server } = this.#log;
    requireUsable(server);
    const id = `${events.at(-1)?.id} ${stream}`;
    const repeated = this.#repeated.get(id) ?? { running: 0, answered: false };
    this.#repeated.set(id, repeated);
    repeated.running += 1;
    const appended = this.#appendUntilKnown(stream, events, expected);
    this.#running.add(appended);
    const startedAt = performance.now();
    try {
      const result = await appended;
      server.worked('append events');
      telemetry.observe('event_store_append_seconds', (performance.now() - startedAt) / 1000);
      const duplicate = result.duplicate || repeated.answered;
      repeated.answered = true;
      return { ...result, duplicate };
    } catch (error) {
      const code = error instanceof EventStoreError ? error.code : 'other';
      if (code !== 'CONFLICT') telemetry.count('event_store_failures_total', { code });
      throw error;
    } finally {
      this.#running.delete(appended);
      repeated.running -= 1;
      if (repeated.running === 0) this.#repeated.delete(id);
    }
  }

  /** Accepts no more appends, and resolves when the running ones have ended. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.allSettled(this.#running);
    this.#calls.close();
  }

  async #appendUntilKnown(
    stream: string,
    events: readonly EncodedEvent[],
    expected: ExpectedRevision,
  ): Promise<AppendResult> {
    const { connection, reader, highWaterMark, identity, timings, telemetry } = this.#log;
    const end = performance.now() + timings.appendOverallMs;
    await highWaterMark.start(() => reader.end());
    const append: PendingAppend = { stream, events, expected, before: highWaterMark.seen };
    let unclear: unknown;
    let latest: unknown;
    for (let failures = 1; ; failures += 1) {
      const isConnected = await connection.isConnected();
      if (!isConnected) identity.connectionLost();
      if (isConnected && (await this.#isSameLog(stream, unclear))) {
        try {
          return await this.#resultOf(append, await this.#attempt(append, end));
        } catch (error) {
          if (error instanceof EventStoreError) throw error;
          const failure = classifyError(error);
          if (failure === 'conflict') return this.#settleConflict(append, error, unclear);
          if (failure === 'refused' && unclear !== undefined)
            throw outcomeUnknownError(stream, await this.#failureOf(error, stream));
          if (failure !== 'unclear' && failure !== 'elsewhere')
            throw await this.#failureOf(error, stream);
          latest = error;
          if (failure === 'unclear') {
            unclear = error;
            identity.connectionLost();
          }
        }
      } else if (!isConnected && unclear === undefined) {
        throw await this.#failureOf(new Error('no connection was made'), stream);
      }
      const wait = pauseAfter(failures, timings.firstPauseMs, timings.longestPauseMs);
      if (connection.closed) throw gaveUpError(stream, unclear, latest);
      if (performance.now() + wait >= end) throw await this.#gaveUp(stream, unclear, latest);
      telemetry.count('eventstore_append_retries_total');
      telemetry.log.debug('retrying an append', { stream, failure: describeError(latest) });
      await pause(wait);
      const arrived = expected === 'any' ? await this.#findInTail(append) : undefined;
      if (arrived !== undefined) return arrived;
    }
  }

  /** The error after the longest waiting time. Reports why the server cannot be used. */
  async #gaveUp(stream: string, unclear: unknown, latest: unknown): Promise<EventStoreError> {
    const last = unclear ?? latest;
    if (!isConnectionFailure(last)) return gaveUpError(stream, unclear, latest);
    const problem = await this.#log.server.unreachable(last, LOOK_MS);
    return gaveUpError(stream, unclear === undefined ? undefined : problem, problem);
  }

  /** The error for an append that wrote nothing. */
  #failureOf(error: unknown, stream: string): Promise<EventStoreError> {
    const doing = `append to ${stream}`;
    const of = { operation: 'append events', doing, stream, limitMs: LOOK_MS } as const;
    return failureOf(this.#log.server, error, of);
  }

  /**
   * Whether the log is still the same; false if unknown.
   * @throws EventStoreError if the log was replaced: `OUTCOME_UNKNOWN` if an earlier attempt may have arrived
   */
  async #isSameLog(stream: string, unclear: unknown): Promise<boolean> {
    try {
      await this.#log.identity.check();
      return true;
    } catch (error) {
      if (this.#log.identity.fault === undefined) return false;
      throw unclear === undefined ? error : outcomeUnknownError(stream, error, true);
    }
  }

  /** One attempt. Rejects with the client's error. */
  #attempt(append: PendingAppend, end: number): Promise<Answer> {
    const left = Math.max(MIN_ATTEMPT_MS, end - performance.now());
    return this.#calls.append(append, Math.min(this.#log.timings.appendAttemptMs, left));
  }

  async #resultOf(append: PendingAppend, answer: Answer): Promise<AppendResult> {
    const revision = Number(answer.nextExpectedRevision);
    const due = lastRevisionOf(append);
    if (due !== undefined && due !== revision) return this.#verify(append, revision);
    const answered = isKnown(answer.position) ? toPosition(answer.position) : undefined;
    const isNew = answered !== undefined && answered > append.before;
    const position = isNew ? answered : await this.#positionOf(append, revision);
    this.#log.highWaterMark.note(position);
    return { revision, position, duplicate: position <= append.before };
  }

  /**
   * The position of a stored event, or the end of the log if the stream does not show the position. For a repeated
   * append, servers send no position, or the position of another event of the append.
   */
  async #positionOf(append: PendingAppend, revision: number): Promise<Position> {
    const { reader } = this.#log;
    try {
      const [event] = await reader.stream(append.stream, BigInt(revision), 'forwards', 1);
      return isKnown(event?.position) ? toPosition(event.position) : await reader.end();
    } catch (error) {
      // The events were written at an unknown place; a repeated append finds them.
      throw outcomeUnknownError(append.stream, error);
    }
  }

  /**
   * Checks the stream when an answer contradicts what was expected. The answer can be right: a softly deleted stream is
   * empty and continues counting.
   */
  async #verify(append: PendingAppend, answered: number): Promise<AppendResult> {
    const contradiction = new Error(`the server answered revision ${answered}`);
    const atPlace = await this.#findAtPlace(append).catch((error: unknown) => {
      throw outcomeUnknownError(append.stream, error);
    });
    const found = atPlace ?? (await this.#findInTail(append));
    if (found === undefined) throw outcomeUnknownError(append.stream, contradiction);
    return found;
  }

  /**
   * The append may conflict with itself: an earlier attempt arrived, or the command ran before. The server recognises
   * most of these; the stream shows the rest.
   */
  async #settleConflict(
    append: PendingAppend,
    error: unknown,
    unclear: unknown,
  ): Promise<AppendResult> {
    const { stream, expected } = append;
    const { reader, timings } = this.#log;
    const actual = actualRevisionOf(error);
    let found: AppendResult | undefined;
    try {
      if (typeof actual === 'number') await waitUntilVisible(reader, timings, stream, actual);
      found = await this.#findAtPlace(append);
    } catch (failure) {
      if (unclear !== undefined) throw outcomeUnknownError(stream, failure);
      throw toEventStoreError(failure, `append to ${stream}`, stream);
    }
    if (found === undefined) {
      // `any` cannot conflict by itself: the server has seen these ids in an earlier attempt.
      if (expected === 'any' && unclear !== undefined) throw outcomeUnknownError(stream, error);
      throw conflictError(stream, expected, actual, error);
    }
    return unclear === undefined ? { ...found, duplicate: true } : found;
  }

  /** The append's result if its events are at the expected revisions. */
  async #findAtPlace(append: PendingAppend): Promise<AppendResult | undefined> {
    const last = lastRevisionOf(append);
    if (last === undefined) return this.#findInTail(append);
    const count = append.events.length;
    const from = BigInt(last - count + 1);
    const found = await this.#log.reader.stream(append.stream, from, 'forwards', count);
    const same = found.every(
      ({ id, revision }, index) =>
        id === append.events[index]?.id && revision === from + BigInt(index),
    );
    if (!same || found.length !== count) return undefined;
    return this.#found(append, last, found.at(-1)?.position);
  }

  /**
   * For `any`, which names no place: the append's result if its last event is among the stream's latest. Searches at
   * least all events since the first attempt.
   */
  async #findInTail(append: PendingAppend): Promise<AppendResult | undefined> {
    const wanted = append.events.at(-1)?.id;
    let from: bigint | 'end' = 'end';
    for (let page = 1; page <= MAX_TAIL_PAGES; page += 1) {
      const tail: readonly ClientEvent[] = await this.#tailFrom(append.stream, from);
      const event = tail.find(({ id }) => id === wanted);
      if (event !== undefined) return this.#found(append, Number(event.revision), event.position);
      const oldest = tail.at(-1);
      if (oldest === undefined || tail.length < TAIL_EVENTS || oldest.revision === 0n)
        return undefined;
      const { position } = oldest;
      if (isKnown(position) && toPosition(position) <= append.before) return undefined;
      from = oldest.revision - 1n;
    }
    return undefined;
  }

  async #tailFrom(stream: string, from: bigint | 'end'): Promise<readonly ClientEvent[]> {
    try {
      return await this.#log.reader.stream(stream, from, 'backwards', TAIL_EVENTS);
    } catch (error) {
      // Harmless: the append is repeated, and the server compares ids as well.
      const failure = describeError(error);
      this.#log.telemetry.log.debug('could not read the end of a stream', { stream, failure });
      return [];
    }
  }

  async #found(
    append: PendingAppend,
    revision: number,
    place: Answer['position'],
  ): Promise<AppendResult> {
    const position = isKnown(place) ? toPosition(place) : await this.#log.reader.end();
    this.#log.highWaterMark.note(position);
    return { revision, position, duplicate: position <= append.before };
  }
}

/** The revision of the last event if the append succeeds where expected. */
function lastRevisionOf({ expected, events }: PendingAppend): number | undefined {
  if (expected === 'any') return undefined;
  return (expected === 'none' ? -1 : expected) + events.length;
}

function gaveUpError(stream: string, unclear: unknown, latest: unknown): EventStoreError {
  if (unclear !== undefined) return outcomeUnknownError(stream, unclear, true);
  const reason = latest === undefined ? '' : `: ${describeError(latest)}`;
  const message = `no EventStoreDB node accepts appends${reason}`;
  return new EventStoreError('UNAVAILABLE', message, { stream, repeated: true, cause: latest });
}

function outcomeUnknownError(stream: string, cause: unknown, repeated = false): EventStoreError {
  return new EventStoreError(
    'OUTCOME_UNKNOWN',
    `it is unknown whether events were appended to ${stream}: ${describeError(cause)}`,
    { stream, cause, repeated },
  );
}
