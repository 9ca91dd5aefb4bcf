import { jsonEvent, type AppendResult as Answer, type JSONType } from '@eventstore/db-client';
import {
  EventStoreError,
  type AppendResult,
  type EncodedEvent,
  type ExpectedRevision,
  type Position,
} from '../../domain/event-store.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { Connection } from './connecting/connection.ts';
import type { Continuity } from './continuity.ts';
import { actualRevisionOf, conflict, failureOf, faultOf, wordsOf } from './connecting/faults.ts';
import type { Horizon } from './horizon.ts';
import { pause, pauseAfter, within } from './connecting/pause.ts';
import { isKnown, toPosition } from './position.ts';
import type { Reading } from './reading.ts';
import type { ClientEvent } from './recorded.ts';
import { untilShown } from './shown.ts';
import type { Timings } from './connecting/timings.ts';

/** Events of a stream that are read at a time, from its end, in the search for ids that may have arrived. */
const TAIL = 200;

/** Most of such pages; a topic has fewer publications in the time that an append takes at the most. */
const MOST_PAGES = 250;

/** How much longer than its deadline a call is waited for, in case the client never settles it. */
const GRACE_MS = 500;

/** The last attempt may take so long, however little of the time for all of them is left. */
const LEAST_MS = 500;

/** One append under way. */
interface Attempted {
  readonly stream: string;
  readonly events: readonly EncodedEvent[];
  readonly expected: ExpectedRevision;
  /** The furthest position known before the first attempt. */
  readonly before: Position;
}

/** The same append, under way once or more in this process: only the first answer was not a repetition. */
interface Twin {
  underWay: number;
  answered: boolean;
}

/** Appends with a known outcome: repeats while it is unknown, and looks for itself after a conflict. */
export class Appending {
  readonly #connection: Connection;
  readonly #reading: Reading;
  readonly #horizon: Horizon;
  readonly #continuity: Continuity;
  readonly #timings: Timings;
  readonly #telemetry: Telemetry;
  readonly #twins = new Map<string, Twin>();
  readonly #underWay = new Set<Promise<unknown>>();
  #closed = false;

  constructor(parts: {
    readonly connection: Connection;
    readonly reading: Reading;
    readonly horizon: Horizon;
    readonly continuity: Continuity;
    readonly timings: Timings;
    readonly telemetry: Telemetry;
  }) {
    this.#connection = parts.connection;
    this.#reading = parts.reading;
    this.#horizon = parts.horizon;
    this.#continuity = parts.continuity;
    this.#timings = parts.timings;
    this.#telemetry = parts.telemetry;
  }

  /** See the port's `append`; events are serialised already. */
  async append(
    stream: string,
    events: readonly EncodedEvent[],
    expected: ExpectedRevision,
  ): Promise<AppendResult> {
    if (this.#closed) throw new EventStoreError('UNAVAILABLE', 'The event log is closed');
    const id = `${events.at(-1)?.id} ${stream}`;
    const twin = this.#twins.get(id) ?? { underWay: 0, answered: false };
    this.#twins.set(id, twin);
    twin.underWay += 1;
    const appended = this.#appendUntilKnown(stream, events, expected);
    this.#underWay.add(appended);
    const asked = performance.now();
    try {
      const result = await appended;
      this.#telemetry.observe('event_store_append_seconds', (performance.now() - asked) / 1000);
      const duplicate = result.duplicate || twin.answered;
      twin.answered = true;
      return { ...result, duplicate };
    } catch (error) {
      const code = error instanceof EventStoreError ? error.code : 'other';
      if (code !== 'CONFLICT') this.#telemetry.count('event_store_failures_total', { code });
      throw error;
    } finally {
      this.#underWay.delete(appended);
      twin.underWay -= 1;
      if (twin.underWay === 0) this.#twins.delete(id);
    }
  }

  /** Takes no more appends, and resolves when those under way have ended. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.allSettled(this.#underWay);
  }

  async #appendUntilKnown(
    stream: string,
    events: readonly EncodedEvent[],
    expected: ExpectedRevision,
  ): Promise<AppendResult> {
    const end = performance.now() + this.#timings.appendOverallMs;
    await this.#horizon.start(() => this.#reading.end());
    const append: Attempted = { stream, events, expected, before: this.#horizon.seen };
    let unclear: unknown;
    for (let failures = 1; ; failures += 1) {
      const isConnected = await this.#connection.isConnected();
      if (!isConnected) this.#continuity.doubt();
      if (isConnected && (await this.#isSameLog(stream, unclear))) {
        try {
          return await this.#resultOf(append, await this.#attempt(append, end));
        } catch (error) {
          if (error instanceof EventStoreError) throw error;
          const failure = failureOf(error);
          if (failure === 'conflict') return this.#settleConflict(append, error, unclear);
          if (failure === 'unclear') {
            unclear = error;
            this.#continuity.doubt();
          } else if (failure !== 'elsewhere') throw faultOf(error, `append to ${stream}`, stream);
        }
      } else if (!isConnected && unclear === undefined) {
        throw new EventStoreError('UNAVAILABLE', 'EventStoreDB cannot be reached', { stream });
      }
      const wait = pauseAfter(failures, this.#timings.firstPauseMs, this.#timings.longestPauseMs);
      if (this.#connection.closed || performance.now() + wait >= end)
        throw givenUp(stream, unclear);
      this.#telemetry.count('eventstore_append_retries_total');
      this.#telemetry.log.debug('Appending again, with the same ids', {
        stream,
        failure: wordsOf(unclear),
      });
      await pause(wait);
      const arrived = expected === 'any' ? await this.#findInTail(append) : undefined;
      if (arrived !== undefined) return arrived;
    }
  }

  /**
   * Whether the log is still the one that it was; false where that can't be told now.
   * @throws EventStoreError where it is another: `OUTCOME_UNKNOWN` if an attempt before may have arrived
   */
  async #isSameLog(stream: string, unclear: unknown): Promise<boolean> {
    try {
      await this.#continuity.check();
      return true;
    } catch (error) {
      if (this.#continuity.fault === undefined) return false;
      throw unclear === undefined ? error : outcomeUnknown(stream, error, true);
    }
  }

  /** One call of the client. Rejects with the client's error. */
  async #attempt({ stream, events, expected }: Attempted, end: number): Promise<Answer> {
    const left = Math.max(LEAST_MS, end - performance.now());
    const deadline = Math.min(this.#timings.appendAttemptMs, left);
    const call = this.#connection.appendToStream(stream, events.map(toClientEvent), {
      expectedRevision: expectedOf(expected),
      credentials: this.#connection.credentials,
      requiresLeader: this.#connection.requiresLeader,
      deadline,
    });
    const answer = await within(call, deadline + GRACE_MS);
    if (answer === undefined) throw new Error('the client gave no answer');
    return answer;
  }

  async #resultOf(append: Attempted, answer: Answer): Promise<AppendResult> {
    const revision = Number(answer.nextExpectedRevision);
    const due = lastRevisionOf(append);
    if (due !== undefined && due !== revision) return this.#verify(append, revision);
    const answered = isKnown(answer.position) ? toPosition(answer.position) : undefined;
    const isNew = answered !== undefined && answered > append.before;
    const position = isNew ? answered : await this.#positionOf(append, revision);
    this.#horizon.note(position);
    return { revision, position, duplicate: position <= append.before };
  }

  /**
   * The position of an event that is there; where the stream does not say, the end, which is not before
   * it. Servers leave the position out of an answer, or give that of another event of the append, when
   * they recognise a repetition.
   */
  async #positionOf(append: Attempted, revision: number): Promise<Position> {
    try {
      const from = BigInt(revision);
      const [event] = await this.#reading.stream(append.stream, from, 'forwards', 1);
      return isKnown(event?.position) ? toPosition(event.position) : await this.#reading.end();
    } catch (error) {
      // Written, but unknown where: appending again finds the place.
      throw outcomeUnknown(append.stream, error);
    }
  }

  /**
   * An answer that does not follow from what was expected is not believed: the stream says. (A stream
   * that was deleted softly is empty and goes on counting where it was, so it can be right.)
   */
  async #verify(append: Attempted, answered: number): Promise<AppendResult> {
    const disbelief = new Error(`the server answered revision ${answered}`);
    const atPlace = await this.#findAtPlace(append).catch((error: unknown) => {
      throw outcomeUnknown(append.stream, error);
    });
    const found = atPlace ?? (await this.#findInTail(append));
    if (found === undefined) throw outcomeUnknown(append.stream, disbelief);
    return found;
  }

  /**
   * A conflict may be with this very append: an earlier attempt that arrived, or the same command
   * before. The server recognises most of these itself; what it does not, the stream shows.
   */
  async #settleConflict(
    append: Attempted,
    error: unknown,
    unclear: unknown,
  ): Promise<AppendResult> {
    const { stream, expected } = append;
    const actual = actualRevisionOf(error);
    let found: AppendResult | undefined;
    try {
      if (typeof actual === 'number')
        await untilShown(this.#reading, this.#timings, stream, actual);
      found = await this.#findAtPlace(append);
    } catch (failure) {
      if (unclear !== undefined) throw outcomeUnknown(stream, failure);
      throw faultOf(failure, `append to ${stream}`, stream);
    }
    if (found === undefined) {
      // Nothing was expected that could not be so: the server has met these ids, of an attempt before.
      if (expected === 'any' && unclear !== undefined) throw outcomeUnknown(stream, error);
      throw conflict(stream, expected, actual, error);
    }
    return unclear === undefined ? { ...found, duplicate: true } : found;
  }

  /** The append's result if its events stand where it expected to put them. */
  async #findAtPlace(append: Attempted): Promise<AppendResult | undefined> {
    const last = lastRevisionOf(append);
    if (last === undefined) return this.#findInTail(append);
    const count = append.events.length;
    const from = BigInt(last - count + 1);
    const found = await this.#reading.stream(append.stream, from, 'forwards', count);
    const same = found.every(
      ({ id, revision }, index) =>
        id === append.events[index]?.id && revision === from + BigInt(index),
    );
    if (!same || found.length !== count) return undefined;
    return this.#found(append, last, found.at(-1)?.position);
  }

  /**
   * The append's result if its last event is among the stream's latest, and in any case among those that came since the
   * first attempt; for `any`, which names no place. Others may have appended much since then.
   */
  async #findInTail(append: Attempted): Promise<AppendResult | undefined> {
    const wanted = append.events.at(-1)?.id;
    let from: bigint | 'end' = 'end';
    for (let page = 1; page <= MOST_PAGES; page += 1) {
      const tail: readonly ClientEvent[] = await this.#tailFrom(append.stream, from);
      const event = tail.find(({ id }) => id === wanted);
      if (event !== undefined) return this.#found(append, Number(event.revision), event.position);
      const oldest = tail.at(-1);
      if (oldest === undefined || tail.length < TAIL || oldest.revision === 0n) return undefined;
      const { position } = oldest;
      if (isKnown(position) && toPosition(position) <= append.before) return undefined;
      from = oldest.revision - 1n;
    }
    return undefined;
  }

  async #tailFrom(stream: string, from: bigint | 'end'): Promise<readonly ClientEvent[]> {
    try {
      return await this.#reading.stream(stream, from, 'backwards', TAIL);
    } catch (error) {
      // Only a look: the append is repeated, and the server compares ids as well.
      const failure = wordsOf(error);
      this.#telemetry.log.debug('The end of a stream could not be read', { stream, failure });
      return [];
    }
  }

  async #found(
    append: Attempted,
    revision: number,
    place: Answer['position'],
  ): Promise<AppendResult> {
    const position = isKnown(place) ? toPosition(place) : await this.#reading.end();
    this.#horizon.note(position);
    return { revision, position, duplicate: position <= append.before };
  }
}

/** The revision of the last event if the append goes where it is expected to. */
function lastRevisionOf({ expected, events }: Attempted): number | undefined {
  if (expected === 'any') return undefined;
  return (expected === 'none' ? -1 : expected) + events.length;
}

function expectedOf(expected: ExpectedRevision): 'no_stream' | 'any' | bigint {
  if (expected === 'none') return 'no_stream';
  return expected === 'any' ? 'any' : BigInt(expected);
}

/**
 * What the client wants: it serialises data itself, so the text is parsed again, which leaves nothing
 * in it that serialising could fail on. Metadata may be handed over as bytes, which stay as they are.
 */
function toClientEvent(event: EncodedEvent): ReturnType<typeof jsonEvent> {
  return jsonEvent({
    id: event.id,
    type: event.type,
    data: JSON.parse(event.data) as JSONType,
    metadata: new TextEncoder().encode(event.metadata),
  });
}

function givenUp(stream: string, unclear: unknown): EventStoreError {
  if (unclear !== undefined) return outcomeUnknown(stream, unclear, true);
  return new EventStoreError('UNAVAILABLE', 'No EventStoreDB node accepts appends', {
    ...{ stream, repeated: true },
  });
}

function outcomeUnknown(stream: string, cause: unknown, repeated = false): EventStoreError {
  return new EventStoreError(
    'OUTCOME_UNKNOWN',
    `It is not known whether events were appended to ${stream}: ${wordsOf(cause)}`,
    { stream, cause, repeated },
  );
}
