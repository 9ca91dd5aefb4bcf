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
import { Appender } from './appender.ts';
import { readConnectionUrl } from './connecting/connection-url.ts';
import { defaultTimings, type Timings } from './connecting/timings.ts';
import { connectLog, type LogParts } from './log-parts.ts';
import { fromPosition } from './position.ts';
import { isJsonText, isSystemEvent, toRawEvent, type ClientEvent } from './client-event.ts';
import { truncateStream } from './truncation.ts';

/** Events per part. */
const PART_EVENTS = 500;
/** Filler events per append. */
const MAX_FILLERS = 500;
/** Appends at once: the server answers after its disk, and writes concurrent appends together. */
const CONCURRENT_APPENDS = 64;
/**
 * No request waits for a transfer, so a server may be unreachable for half a minute. At the start, an unreachable
 * server is reported sooner.
 */
const TRANSFER_TIMINGS: Partial<Timings> = {
  readMs: 30_000,
  connectMs: 30_000,
  appendOverallMs: 40_000,
  pingMs: 5_000,
};

/** The type of an event that fills the place of a deleted one. Readers skip types that start with `$`. */
/**
 * Replaces an event that is gone. Names that start with `$` belong to the engine, so this service's readers never see
 * it.
 */
const FILLER_TYPE = '$filler';

/** Type of the event that deletes a stream for good. A stream deleted softly has metadata with a maximal `$tb`. */
const DELETED_TYPE = '$streamDeleted';

/**
 * Opens the log of an EventStoreDB server for a transfer.
 * @throws ConnectionUrlError for an invalid connection string
 */
export function openEventStoreDbTransfer(options: {
  readonly url: string;
  readonly telemetry: Telemetry;
  readonly timings?: Partial<Timings>;
}): LogTransfer {
  const settings = readConnectionUrl(options.url);
  const { telemetry } = options;
  const timings = { ...defaultTimings, ...TRANSFER_TIMINGS, ...options.timings };
  return new EventStoreDbTransfer(connectLog(settings, timings, telemetry));
}

class EventStoreDbTransfer implements LogTransfer {
  readonly engine = 'eventstoredb';
  readonly sideBySide = CONCURRENT_APPENDS;
  readonly #log: LogParts;
  readonly #appender: Appender;
  /** Timeout of the first read, in milliseconds; undefined after it. */
  #firstMs: number | undefined;

  constructor(log: LogParts) {
    this.#log = log;
    this.#appender = new Appender(log);
    this.#firstMs = log.timings.pingMs;
  }

  async *contents(): AsyncGenerator<LogPart> {
    const { reader } = this.#log;
    // Engine events count: the last event may be a truncation.
    const end = await reader.end(this.#firstMs);
    this.#firstMs = undefined;
    const length = byteOf(end);
    const deleted = new Set<string>();
    let after: Position = BEGINNING;
    for (let ended = false; !ended && after < end;) {
      const events: RawEvent[] = [];
      const truncations: Truncation[] = [];
      ended = await reader.forwards(after, PART_EVENTS, (event, position) => {
        if (position > end) return 'enough';
        after = position;
        const truncation = truncationOf(event);
        if (truncation === null) {
          if (!isSystemEvent(event)) events.push(toRawEvent(event));
        } else if (truncation.before === Infinity) deleted.add(truncation.stream);
        else {
          // The stream began again after a soft deletion.
          deleted.delete(truncation.stream);
          truncations.push(truncation);
        }
        return events.length < PART_EVENTS && position < end ? 'more' : 'enough';
      });
      const share = length === 0 ? 1 : byteOf(after) / length;
      yield { events, read: events.length, truncations, share };
    }
    if (deleted.size === 0) return;
    yield { events: [], read: 0, truncations: await this.#wholly(deleted, end), share: 1 };
  }

  /** Deleted streams and their last revisions, which only the log itself shows. */
  async #wholly(deleted: ReadonlySet<string>, end: Position): Promise<readonly Truncation[]> {
    const befores = new Map<string, number>();
    const { reader } = this.#log;
    await reader.forwards(BEGINNING, PART_EVENTS, ({ streamId, type, revision }, position) => {
      if (position > end) return 'enough';
      if (deleted.has(streamId) && type !== DELETED_TYPE)
        befores.set(streamId, Number(revision) + 1);
      return position < end ? 'more' : 'enough';
    });
    return Array.from(befores, ([stream, before]) => ({ stream, before }));
  }

  async append(appends: readonly RawAppend[]): Promise<void> {
    for (const { stream, events, expected } of appends) {
      for (const [index, event] of events.entries()) {
        if (isJsonText(event.data)) continue;
        const revision = (expected === 'none' ? 0 : expected + 1) + index;
        const text = `revision ${revision} of ${stream} is damaged: EventStoreDB accepts only JSON`;
        throw new EventStoreError('INVALID_EVENT', text, { stream });
      }
      await this.#appender.append(stream, events, expected);
    }
  }

  async skipTo(stream: string, revision: number): Promise<void> {
    const [last] = await this.#log.reader.stream(stream, 'end', 'backwards', 1);
    let next = last === undefined ? 0 : Number(last.revision) + 1;
    while (next < revision) {
      const events = Array.from({ length: Math.min(MAX_FILLERS, revision - next) }, filler);
      try {
        const expected = next === 0 ? 'none' : next - 1;
        await this.#appender.append(stream, events, expected);
        next += events.length;
      } catch (error) {
        // A wholly truncated stream shows its revision only in a conflict.
        const actual = isConflict(error) && typeof error.actual === 'number' ? error.actual : -1;
        if (actual < next) throw error;
        next = actual + 1;
      }
    }
    await truncateStream(this.#log.reader, this.#appender, stream, revision);
  }

  async close(): Promise<void> {
    await this.#appender.close();
    await this.#log.server.close();
    await this.#log.connection.close();
  }
}

const filler = (): EncodedEvent => ({
  id: randomUUID(),
  type: FILLER_TYPE,
  data: '{}',
  metadata: '{}',
});

/** The byte offset of a position in the log. */
function byteOf(position: Position): number {
  const place = fromPosition(position);
  return place === 'start' ? 0 : Number(place.commit);
}

/** The truncation that an engine event records; `before` is `Infinity` for a deletion. */
function truncationOf({ streamId, type, data }: ClientEvent): Truncation | null {
  if (type === DELETED_TYPE) return { stream: streamId, before: Infinity };
  if (type !== '$metadata' || !streamId.startsWith('$$')) return null;
  const before = (data as { readonly $tb?: unknown } | null)?.$tb;
  if (typeof before !== 'number' || before <= 0) return null;
  return { stream: streamId.slice(2), before: Number.isSafeInteger(before) ? before : Infinity };
}
