import { randomUUID } from 'node:crypto';
import {
  BEGINNING,
  EventStoreError,
  isConflict,
  type EncodedEvent,
  type Position,
  type RawEvent,
} from '../../domain/event-store.ts';
import type { LogPart, LogTransfer, RawAppend, Truncation } from '../../domain/log-transfer.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import { Appending } from './appending.ts';
import { readConnectionUrl } from './connecting/connection-url.ts';
import { Connection } from './connecting/connection.ts';
import { Continuity } from './continuity.ts';
import { Horizon } from './horizon.ts';
import { fromPosition } from './position.ts';
import { Reading } from './reading.ts';
import { isSystemEvent, toRaw, type ClientEvent } from './recorded.ts';
import { defaultTimings, type Timings } from './connecting/timings.ts';
import { truncateStream } from './truncation.ts';

/** Events of a part. */
const PART = 500;
/** Fillers of one append. */
const FILLERS = 500;
/** A server answers an append after it is on its disk: with many under way it writes them together. */
const SIDE_BY_SIDE = 64;
/**
 * Nobody's request waits for a move: in its midst a server may be away for half a minute, and it goes on. One that is
 * away from the start is said to be so soon.
 */
const PATIENCE: Partial<Timings> = {
  readMs: 30_000,
  connectMs: 30_000,
  appendOverallMs: 40_000,
  pingMs: 5_000,
};

/** Stands where an event was that is gone. Names that begin with `$` are the engine's, and no reader of ours sees it. */
const FILLER = '$filler';

/** Ends a stream for ever. One that may begin again has metadata that say it counts from beyond every revision. */
const DELETED = '$streamDeleted';

/**
 * Opens the log of an EventStoreDB server to be moved.
 * @throws ConnectionUrlError when the connection string can't be meant so
 */
export function openEventStoreDbTransfer(options: {
  readonly url: string;
  readonly telemetry: Telemetry;
  readonly timings?: Partial<Timings>;
}): LogTransfer {
  const settings = readConnectionUrl(options.url);
  const { telemetry } = options;
  const timings = { ...defaultTimings, ...PATIENCE, ...options.timings };
  const connection = new Connection(settings, timings, telemetry);
  const horizon = new Horizon();
  const reading = new Reading(connection, timings, horizon);
  const continuity = new Continuity({ reading, horizon, timings, telemetry });
  const appending = new Appending({
    ...{ connection, reading, horizon, continuity, timings, telemetry },
  });
  return new EventStoreDbTransfer({ connection, reading, appending, firstMs: timings.pingMs });
}

class EventStoreDbTransfer implements LogTransfer {
  readonly engine = 'eventstoredb';
  readonly sideBySide = SIDE_BY_SIDE;
  readonly #connection: Connection;
  readonly #reading: Reading;
  readonly #appending: Appending;
  /** How long the first answer is waited for; undefined once it has come. Milliseconds. */
  #firstMs: number | undefined;

  constructor(parts: {
    readonly connection: Connection;
    readonly reading: Reading;
    readonly appending: Appending;
    readonly firstMs: number;
  }) {
    this.#connection = parts.connection;
    this.#reading = parts.reading;
    this.#appending = parts.appending;
    this.#firstMs = parts.firstMs;
  }

  async *contents(): AsyncGenerator<LogPart> {
    // The engine's own events count: a stream may have been cut off last of all.
    const end = await this.#reading.end(this.#firstMs);
    this.#firstMs = undefined;
    const length = byteOf(end);
    const deleted = new Set<string>();
    let after: Position = BEGINNING;
    for (let ended = false; !ended && after < end;) {
      const events: RawEvent[] = [];
      const truncations: Truncation[] = [];
      ended = await this.#reading.forwards(after, PART, (event, position) => {
        if (position > end) return 'enough';
        after = position;
        const truncation = truncationOf(event);
        if (truncation === null) {
          if (!isSystemEvent(event)) events.push(toRaw(event));
        } else if (truncation.before === Infinity) deleted.add(truncation.stream);
        else {
          // It began again, where it was deleted before.
          deleted.delete(truncation.stream);
          truncations.push(truncation);
        }
        return events.length < PART && position < end ? 'more' : 'enough';
      });
      const share = length === 0 ? 1 : byteOf(after) / length;
      yield { events, read: events.length, truncations, share };
    }
    if (deleted.size === 0) return;
    yield { events: [], read: 0, truncations: await this.#wholly(deleted, end), share: 1 };
  }

  /** Streams that are gone with all their events. Nobody can read where one ended but in the log itself. */
  async #wholly(deleted: ReadonlySet<string>, end: Position): Promise<readonly Truncation[]> {
    const befores = new Map<string, number>();
    await this.#reading.forwards(BEGINNING, PART, ({ streamId, type, revision }, position) => {
      if (position > end) return 'enough';
      if (deleted.has(streamId) && type !== DELETED) befores.set(streamId, Number(revision) + 1);
      return position < end ? 'more' : 'enough';
    });
    return Array.from(befores, ([stream, before]) => ({ stream, before }));
  }

  async append(appends: readonly RawAppend[]): Promise<void> {
    for (const { stream, events, expected } of appends) {
      for (const [index, event] of events.entries()) {
        if (isJson(event.data)) continue;
        const revision = (expected === 'none' ? 0 : expected + 1) + index;
        const text = `revision ${revision} of ${stream} is damaged: EventStoreDB takes JSON alone`;
        throw new EventStoreError('INVALID_EVENT', text, { stream });
      }
      await this.#appending.append(stream, events, expected);
    }
  }

  async skipTo(stream: string, revision: number): Promise<void> {
    const [last] = await this.#reading.stream(stream, 'end', 'backwards', 1);
    let next = last === undefined ? 0 : Number(last.revision) + 1;
    while (next < revision) {
      const events = Array.from({ length: Math.min(FILLERS, revision - next) }, filler);
      try {
        const expected = next === 0 ? 'none' : next - 1;
        await this.#appending.append(stream, events, expected);
        next += events.length;
      } catch (error) {
        // Of a stream that is cut off to its end nothing can be read: only this tells how far it went.
        const actual = isConflict(error) && typeof error.actual === 'number' ? error.actual : -1;
        if (actual < next) throw error;
        next = actual + 1;
      }
    }
    await truncateStream(this.#reading, this.#appending, stream, revision);
  }

  async close(): Promise<void> {
    await this.#appending.close();
    await this.#connection.close();
  }
}

const filler = (): EncodedEvent => ({ id: randomUUID(), type: FILLER, data: '{}', metadata: '{}' });

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Where a position lies in the log, as bytes. */
function byteOf(position: Position): number {
  const place = fromPosition(position);
  return place === 'start' ? 0 : Number(place.commit);
}

/** From where on a stream counts, where an event of the engine says so; `Infinity` where it was deleted as a whole. */
function truncationOf({ streamId, type, data }: ClientEvent): Truncation | null {
  if (type === DELETED) return { stream: streamId, before: Infinity };
  if (type !== '$metadata' || !streamId.startsWith('$$')) return null;
  const before = (data as { readonly $tb?: unknown } | null)?.$tb;
  if (typeof before !== 'number' || before <= 0) return null;
  return { stream: streamId.slice(2), before: Number.isSafeInteger(before) ? before : Infinity };
}
