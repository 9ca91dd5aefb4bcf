import type { StreamingRead, ReadRevision, ResolvedEvent } from '@eventstore/db-client';
import { BEGINNING, type Position } from '../../domain/event-store.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { ServerCondition } from '../servers/server-condition.ts';
import { pause, pauseAfter } from '../waiting.ts';
import { failureOf, requireUsable } from './connecting/condition.ts';
import type { Connection } from './connecting/connection.ts';
import {
  classifyError,
  isConnectionFailure,
  toEventStoreError,
} from './connecting/client-errors.ts';
import type { Timings } from './connecting/timings.ts';
import type { HighWaterMark } from './high-water-mark.ts';
import { fromPosition, isKnown, toPosition } from './position.ts';
import { eventOf, isSystemEvent, sizeOf, type ClientEvent } from './client-event.ts';

/** Whether a visitor wants to read on. */
export type Visit = 'more' | 'enough';

/** The longest time that a failed read waits for the reason. `ping` must answer within two seconds. Milliseconds. */
const LOOK_MS = 100;

/** A page of the log. */
export interface EventPage {
  readonly events: readonly ClientEvent[];
  /** The position of the last entry; without entries, the start of the page. */
  readonly upTo: Position;
  /** Whether the log ended there. */
  readonly isLast: boolean;
}

/** The purpose of a read. */
interface Reading {
  /** The kind of call for the metrics. */
  readonly call: 'read_stream' | 'read_log' | 'find_end';
  /** The words for the message of an error. */
  readonly doing: string;
  readonly stream?: string;
}

const READ_LOG: Reading = { call: 'read_log', doing: 'read the log' };
const FIND_END: Reading = { call: 'find_end', doing: 'find the end of the log' };

/** A page ends early after this many bytes. */
const MAX_PAGE_BYTES = 4 * 1024 * 1024;

/** Events per read where most may be skipped. */
const PAGE = 256;

/** Reads of the log, each with a limit on how long it may stall; the client has none. */
export class LogReader {
  readonly #connection: Connection;
  readonly #server: ServerCondition;
  readonly #timings: Timings;
  readonly #highWaterMark: HighWaterMark;
  readonly #telemetry: Telemetry;
  /** The end of the log when its head was last looked up, and that head. */
  #lastHead: { readonly end: Position; readonly head: Position } | undefined;

  constructor(parts: {
    readonly connection: Connection;
    readonly server: ServerCondition;
    readonly timings: Timings;
    readonly highWaterMark: HighWaterMark;
    readonly telemetry: Telemetry;
  }) {
    this.#connection = parts.connection;
    this.#server = parts.server;
    this.#timings = parts.timings;
    this.#highWaterMark = parts.highWaterMark;
    this.#telemetry = parts.telemetry;
  }

  /** Up to `limit` events of one stream; none where it does not exist. @throws EventStoreError `UNAVAILABLE`, `STREAM_DELETED` */
  async stream(
    stream: string,
    from: ReadRevision,
    direction: 'forwards' | 'backwards',
    limit: number,
  ): Promise<readonly ClientEvent[]> {
    if (limit <= 0) return [];
    const open = (): StreamingRead<ResolvedEvent> =>
      this.#connection.readStream(stream, { fromRevision: from, direction, maxCount: limit });
    return this.#collect({ call: 'read_stream', doing: `read stream ${stream}`, stream }, open);
  }

  /**
   * Visits the log forwards after a position, the engine's own events included, until the visitor has enough.
   * @param page how many events to request at a time
   * @returns whether it reached the end of the log
   * @throws EventStoreError `UNAVAILABLE`
   */
  async forwards(
    after: Position,
    page: number,
    visit: (event: ClientEvent, position: Position) => Visit,
  ): Promise<boolean> {
    if (await this.#isBeyond(after)) return true;
    for (let last = after, size = page; ; size = Math.max(page, PAGE)) {
      // One more event, because the read includes its starting position.
      const events = await this.#all('forwards', fromPosition(last), size + 1);
      for (const event of events) {
        const position = this.#positionOf(event);
        if (position === undefined || position <= last) continue;
        last = position;
        if (visit(event, position) === 'enough') return false;
      }
      if (events.length <= size) return true;
    }
  }

  /**
   * Reads up to a number of events after a position, including the engine's own. The read ends early if they are large.
   * @throws EventStoreError `INVALID_EVENT` for an invalid position, `UNAVAILABLE`
   */
  async page(after: Position, limit: number): Promise<EventPage> {
    if (await this.#isBeyond(after)) return { events: [], upTo: after, isLast: true };
    // One more event, because the read includes its starting position.
    const maxCount = limit + 1;
    let events: ClientEvent[] = [];
    let upTo = after;
    let count = 0;
    let bytes = 0;
    const open = (): StreamingRead<ResolvedEvent> => {
      events = [];
      [upTo, count, bytes] = [after, 0, 0];
      return this.#connection.readAll({
        direction: 'forwards',
        fromPosition: fromPosition(after),
        maxCount,
      });
    };
    await this.#visit(READ_LOG, open, (event) => {
      const position = this.#positionOf(event);
      count += 1;
      if (position === undefined || position <= upTo) return 'more';
      events.push(event);
      upTo = position;
      bytes += sizeOf(event);
      return bytes < MAX_PAGE_BYTES ? 'more' : 'enough';
    });
    return { events, upTo, isLast: count < maxCount && bytes < MAX_PAGE_BYTES };
  }

  /**
   * Up to `limit` wanted events before a position (null: from the end), the last first.
   * @throws EventStoreError `INVALID_EVENT` for an invalid position, `UNAVAILABLE`
   */
  async backwards(
    before: Position | null,
    limit: number,
    wants: (event: ClientEvent) => boolean,
  ): Promise<readonly ClientEvent[]> {
    const found: ClientEvent[] = [];
    const isBeyond = before !== null && (await this.#isBeyond(before));
    for (let last = isBeyond ? null : before; found.length < limit;) {
      const from = last === null ? 'end' : fromPosition(last);
      const events = await this.#all('backwards', from, PAGE);
      for (const event of events) {
        const position = this.#positionOf(event);
        if (position === undefined || (last !== null && position >= last)) continue;
        last = position;
        if (wants(event) && found.length < limit) found.push(event);
      }
      if (events.length < PAGE) break;
    }
    return found;
  }

  /** The position of the last event that is not the engine's own, or `BEGINNING`. @throws EventStoreError `UNAVAILABLE` */
  async head(): Promise<Position> {
    const before = this.#lastHead;
    let end: Position | undefined;
    let head: Position | undefined;
    const open = (): StreamingRead<ResolvedEvent> =>
      this.#connection.readAll({ direction: 'backwards', fromPosition: 'end' });
    await this.#visit(FIND_END, open, (event) => {
      const position = this.#positionOf(event);
      if (position === undefined) return 'more';
      end ??= position;
      if (before !== undefined && position <= before.end) head = before.head;
      else if (!isSystemEvent(event)) head = position;
      return head === undefined ? 'more' : 'enough';
    });
    const found = head ?? BEGINNING;
    this.#lastHead = { end: end ?? BEGINNING, head: found };
    return found;
  }

  /**
   * The position of the very last event, the engine's own included.
   * @param limitMs timeout; default: that of other reads
   * @throws EventStoreError `UNAVAILABLE`
   */
  async end(limitMs = this.#timings.readMs): Promise<Position> {
    const open = (): StreamingRead<ResolvedEvent> =>
      this.#connection.readAll({ direction: 'backwards', fromPosition: 'end', maxCount: 1 });
    const [last] = await this.#collect(FIND_END, open, limitMs);
    return (last && this.#positionOf(last)) ?? BEGINNING;
  }

  /** The id of the event at a position; undefined if there is none. @throws EventStoreError `UNAVAILABLE` */
  async idAt(position: Position): Promise<string | undefined> {
    const [event] = await this.#all('forwards', fromPosition(position), 1);
    if (event === undefined || !isKnown(event.position)) return undefined;
    return toPosition(event.position) === position ? event.id : undefined;
  }

  /**
   * The position to subscribe from: the given one if an event has it, otherwise the position of the previous event.
   * Servers before 24.2 skip the first event at or after the position. If the one at the position has been scavenged,
   * they would skip an event that nobody has received.
   * @throws EventStoreError `INVALID_EVENT` for an invalid position, `UNAVAILABLE`
   */
  async subscribablePosition(after: Position): Promise<Position> {
    const place = fromPosition(after);
    if (place === 'start') return after;
    const [there] = await this.#all('forwards', place, 1);
    if (there !== undefined && this.#positionOf(there) === after) return after;
    const [before] = await this.#all('backwards', place, 1);
    return (before && this.#positionOf(before)) ?? BEGINNING;
  }

  /**
   * Whether a position lies beyond the end of the log. Servers report reads from there as a general error
   * (`TFChunkReader.TryReadPrev`).
   * @throws EventStoreError `INVALID_EVENT` for an invalid position
   */
  async #isBeyond(position: Position): Promise<boolean> {
    if (fromPosition(position) === 'start' || position <= this.#highWaterMark.seen) return false;
    return position > (await this.end());
  }

  #all(
    direction: 'forwards' | 'backwards',
    from: ReturnType<typeof fromPosition> | 'end',
    maxCount: number,
  ): Promise<readonly ClientEvent[]> {
    const open = (): StreamingRead<ResolvedEvent> =>
      this.#connection.readAll({ direction, fromPosition: from, maxCount });
    return this.#collect(READ_LOG, open);
  }

  #positionOf(event: ClientEvent): Position | undefined {
    if (!isKnown(event.position)) return undefined;
    const position = toPosition(event.position);
    this.#highWaterMark.noteEvent(position, event.id);
    return position;
  }

  async #collect(
    reading: Reading,
    open: () => StreamingRead<ResolvedEvent>,
    limitMs?: number,
  ): Promise<readonly ClientEvent[]> {
    let events: ClientEvent[] = [];
    const start = (): StreamingRead<ResolvedEvent> => {
      events = [];
      return open();
    };
    const collect = (event: ClientEvent): Visit => {
      events.push(event);
      return 'more';
    };
    await this.#visit(reading, start, collect, limitMs);
    return events;
  }

  /** Reads, and retries after a lost connection while there is time. */
  async #visit(
    { call, doing, stream }: Reading,
    open: () => StreamingRead<ResolvedEvent>,
    visit: (event: ClientEvent) => Visit,
    limitMs = this.#timings.readMs,
  ): Promise<void> {
    const operation = stream === undefined ? 'read the whole log' : 'read streams';
    requireUsable(this.#server, operation);
    const end = performance.now() + limitMs;
    for (let failures = 1; ; failures += 1) {
      this.#telemetry.count('eventstore_calls_total', { call });
      try {
        await consume(open(), visit, Math.max(1, end - performance.now()), limitMs);
        // Closing cancels reads, and the client reports a cancelled read as complete.
        if (this.#connection.closed) throw new Error('the connection was closed');
        this.#server.worked(operation);
        return;
      } catch (error) {
        const failure = classifyError(error);
        if (failure === 'not-found') return this.#server.worked(operation);
        const wait = pauseAfter(failures, this.#timings.firstPauseMs, this.#timings.longestPauseMs);
        const again = failure === 'unclear' || failure === 'elsewhere';
        if (this.#connection.closed) throw toEventStoreError(error, doing, stream);
        if (!again || performance.now() + wait >= end) {
          const of = { operation, doing, stream, limitMs: LOOK_MS } as const;
          throw await failureOf(this.#server, error, of);
        }
        // Finds out the reason while the read is retried.
        if (isConnectionFailure(error)) this.#server.suspect();
        await pause(wait);
      }
    }
  }
}

/**
 * Runs one read to its end, or until the visitor has enough. The call is always cancelled here: leaving a `for await`
 * would keep it open on the server. A late error still has a listener, as it would otherwise end the process.
 * @param firstMs how long the first event may take
 * @param nextMs how long each later one may take
 */
function consume(
  read: StreamingRead<ResolvedEvent>,
  visit: (event: ClientEvent) => Visit,
  firstMs: number,
  nextMs: number,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const late = (): void => finish(new Error(`no answer within ${firstMs} ms`));
    let timer = setTimeout(late, firstMs);
    let finished = false;
    const finish = (error?: Error): void => {
      if (finished) return;
      finished = true;
      clearTimeout(timer);
      read.destroy();
      read.cancel().catch(() => undefined);
      if (error === undefined) resolve();
      else reject(error);
    };
    read.on('error', finish);
    read.on('end', () => finish());
    read.on('close', () => finish(new Error('the read was closed')));
    read.on('data', (resolved: ResolvedEvent) => {
      if (finished) return;
      clearTimeout(timer);
      timer = setTimeout(late, nextMs);
      const event = eventOf(resolved);
      if (event !== undefined && visit(event) === 'enough') finish();
    });
  });
}
