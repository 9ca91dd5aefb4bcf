import { fromIso, toIso, type Instant } from '../../domain/clock.ts';
import type {
  EventStore,
  ExpectedRevision,
  Position,
  RecordedEvent,
} from '../../domain/event-store.ts';
import type { DataOf } from '../../domain/events/catalogue.ts';
import { namespaceOfEvent } from '../../domain/events/metadata.ts';
import { toNewEvents, type CommandContext } from '../../domain/handle.ts';
import { nameBasedId } from '../../domain/ids.ts';
import { mapInBatches } from '../../domain/map-in-batches.ts';
import { streams } from '../../domain/streams.ts';
import { tryAppend } from '../../domain/try-append.ts';
import type { RemovedKind } from '../../domain/vocabulary.ts';
import { readWholeStream } from '../read-stream.ts';
import { retentionRules } from './retention-rules.ts';

/** The part of a stream that is about to be removed, without the tombstone. */
interface RemovablePart {
  readonly stream: string;
  readonly positions: readonly Position[];
  /** Positions of events that agents caused. */
  readonly audited: readonly Position[];
  /** The revision before which the stream is truncated. */
  readonly before: number;
  /** Whether this part is the rest of the stream. A long stream is removed in parts. */
  readonly isWhole: boolean;
}

/** Events per record of removal, which lists their positions. */
const MAX_EVENTS = 5_000;

const CONCURRENCY = 25;

/**
 * Removes records from the views and then from the log. It appends a tombstone, which the views see, to each stream.
 * Then it records the removal with its streams, and then it truncates them. After a crash, {@link finish} truncates the
 * recorded streams, and a stream with more than its tombstone is recorded again.
 */
export class Removal {
  readonly #store: EventStore;
  readonly #context: () => CommandContext;
  /** The revision of the last event of `retention`. The next record fails if another process also removes records. */
  #revision: ExpectedRevision = 'none';
  /** Streams of the current call that have not expired yet. */
  #expiring = 0;

  constructor(store: EventStore, context: () => CommandContext) {
    this.#store = store;
    this.#context = context;
  }

  /** Truncates the streams of the last record. Must be called first. @throws EventStoreError */
  async finish(): Promise<void> {
    const options = { direction: 'backwards', limit: 1 } as const;
    const [last] = await this.#store.readStream(streams.retention(), options);
    this.#revision = last?.revision ?? 'none';
    if (last?.type === 'RecordsRemoved') await this.#truncate(last.data);
  }

  /**
   * Removes the streams among the given ones that ended before a time.
   * @returns the number of removed records, and of records that are old enough but expire later
   * @throws EventStoreError; `CONFLICT` if another process also removes records
   */
  async remove(
    kind: RemovedKind,
    names: readonly string[],
    before: Instant,
  ): Promise<{ readonly records: number; readonly expiring: number }> {
    this.#expiring = 0;
    let parts: RemovablePart[] = [];
    let events = 0;
    let records = 0;
    const firstParts = await mapInBatches(names, CONCURRENCY, (stream) =>
      this.#prepare(kind, stream, before),
    );
    for (let part of firstParts) {
      while (part !== null) {
        parts.push(part);
        events += part.positions.length;
        records += part.isWhole ? 1 : 0;
        if (events >= MAX_EVENTS || !part.isWhole) {
          await this.#record(kind, parts, before);
          parts = [];
          events = 0;
        }
        part = part.isWhole ? null : await this.#prepare(kind, part.stream, before);
      }
    }
    if (parts.length > 0) await this.#record(kind, parts, before);
    return { records, expiring: this.#expiring };
  }

  async #record(
    kind: RemovedKind,
    parts: readonly RemovablePart[],
    before: Instant,
  ): Promise<void> {
    const positions = parts.flatMap((part) => part.positions).sort();
    const data: DataOf<'RecordsRemoved'> = {
      kind,
      records: parts.filter(({ isWhole }) => isWhole).length,
      events: positions.length,
      first_position: positions[0] ?? '',
      last_position: positions.at(-1) ?? '',
      older_than: toIso(before),
      streams: parts.map((part) => ({ stream: part.stream, before: part.before })),
      audited: parts.flatMap((part) => part.audited),
    };
    const stream = streams.retention();
    const appended = toNewEvents(stream, [{ type: 'RecordsRemoved', data }], this.#context());
    const { revision } = await this.#store.append(stream, appended, this.#revision);
    this.#revision = revision;
    await this.#truncate(data);
  }

  /** Appends a stream's tombstone; null if the record is open or nothing is left to remove. */
  async #prepare(
    kind: RemovedKind,
    stream: string,
    before: Instant,
  ): Promise<RemovablePart | null> {
    const { endsAt, ...rule } = retentionRules[kind];
    const all = await readWholeStream(this.#store, stream, { faulty: true });
    const tombstone = rule.tombstone?.(all) ?? null;
    const hasTombstone = tombstone !== null && all.at(-1)?.type === tombstone.type;
    const events = hasTombstone ? all.slice(0, -1) : all;
    const last = events.at(-1);
    if (last === undefined || fromIso(last.metadata.occurredAt) >= before) return null;
    if (events.some(({ fault }) => fault !== undefined)) return null;
    const end = await endsAt(events, this.#store);
    if (end === null) return null;
    if (end >= before) {
      this.#expiring += 1;
      return null;
    }
    if (hasTombstone || tombstone === null) {
      const part = tombstone === null ? events.slice(0, MAX_EVENTS) : events;
      const lastOfPart = part.at(-1) ?? last;
      const isWhole = lastOfPart === last;
      return { ...positionsOf(stream, part), before: lastOfPart.revision + 1, isWhole };
    }
    const commandId = nameBasedId('retention', stream);
    const [first = last] = events;
    const namespace = namespaceOfEvent(first);
    const context = { ...this.#context(), commandId, namespace };
    const appended = toNewEvents(stream, [tombstone], context);
    const result = await tryAppend(this.#store, stream, appended, last.revision);
    // Null: the record has changed in the meantime, and has not ended.
    if (result === null) return null;
    return { ...positionsOf(stream, events), before: result.revision, isWhole: true };
  }

  async #truncate(removed: DataOf<'RecordsRemoved'>): Promise<void> {
    await mapInBatches(removed.streams, CONCURRENCY, ({ stream, before }) =>
      this.#store.truncate(stream, before),
    );
  }
}

function positionsOf(
  stream: string,
  events: readonly RecordedEvent[],
): Pick<RemovablePart, 'stream' | 'positions' | 'audited'> {
  const byAgents = events.filter(({ metadata }) => metadata.actor !== 'service');
  const positions = events.map(({ position }) => position);
  return { stream, positions, audited: byAgents.map(({ position }) => position) };
}
