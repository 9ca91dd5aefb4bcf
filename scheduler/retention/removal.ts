import { fromIso, toIso, type Instant } from '../../domain/clock.ts';
import {
  isConflict,
  type EventStore,
  type ExpectedRevision,
  type Position,
  type RecordedEvent,
} from '../../domain/event-store.ts';
import type { DataOf } from '../../domain/events/catalogue.ts';
import { toNewEvents, type CommandContext } from '../../domain/handle.ts';
import { nameBasedId } from '../../domain/ids.ts';
import { sideBySide } from '../../domain/side-by-side.ts';
import { streams } from '../../domain/streams.ts';
import type { RetainedKind } from '../../domain/vocabulary.ts';
import { readWholeStream } from './old-events.ts';
import { retentionRules } from './retention-rules.ts';

/** A record that is about to be removed: the places of its events, without that of what is left of it. */
interface Going {
  readonly stream: string;
  readonly positions: readonly Position[];
  /** Those of what agents did. */
  readonly audited: readonly Position[];
  /** The revision before which the stream is cut. */
  readonly before: number;
  /** Nothing of it stays but what is left on purpose; a long stream goes by pieces. */
  readonly isWhole: boolean;
}

/** Events to a record of removal: their positions must fit into one. */
const MOST_EVENTS = 5_000;

/** Streams that are read, left or cut at a time: what is appended to them is made durable together. */
const SIDE_BY_SIDE = 25;

/**
 * Takes records out of the views and then out of the log, some at a time: what is left of each is appended to its
 * stream, where the views see it; that they are gone is recorded, with their streams; then the streams are cut. After a
 * death at any of these the next one goes on: {@link finish} cuts what was recorded, and a record of which there is
 * more than what is left of it is recorded again.
 */
export class Removal {
  readonly #store: EventStore;
  readonly #context: () => CommandContext;
  /** Of the last event of `retention`: whoever else removes meanwhile makes the next record fail. */
  #revision: ExpectedRevision = 'none';
  /** Streams of the present call that are left for now, as they are yet to expire. */
  #expiring = 0;

  constructor(store: EventStore, context: () => CommandContext) {
    this.#store = store;
    this.#context = context;
  }

  /** Cuts what was recorded last. To be called first. @throws EventStoreError */
  async finish(): Promise<void> {
    const options = { direction: 'backwards', limit: 1 } as const;
    const [last] = await this.#store.readStream(streams.retention(), options);
    this.#revision = last?.revision ?? 'none';
    if (last?.type === 'RecordsRemoved') await this.#cut(last.data);
  }

  /**
   * Removes those of some streams that have been over since before a moment.
   * @returns how many records; and how many are old enough, but have not been expired for as long yet: nothing will be
   *   written when they have
   * @throws EventStoreError; a `CONFLICT` where another process removes too
   */
  async remove(
    kind: RetainedKind,
    names: readonly string[],
    before: Instant,
  ): Promise<{ readonly records: number; readonly expiring: number }> {
    this.#expiring = 0;
    let going: Going[] = [];
    let events = 0;
    let records = 0;
    const begun = await sideBySide(names, SIDE_BY_SIDE, (stream) =>
      this.#leave(kind, stream, before),
    );
    for (let found of begun) {
      while (found !== null) {
        going.push(found);
        events += found.positions.length;
        records += found.isWhole ? 1 : 0;
        if (events >= MOST_EVENTS || !found.isWhole) {
          await this.#record(kind, going, before);
          going = [];
          events = 0;
        }
        found = found.isWhole ? null : await this.#leave(kind, found.stream, before);
      }
    }
    if (going.length > 0) await this.#record(kind, going, before);
    return { records, expiring: this.#expiring };
  }

  async #record(kind: RetainedKind, going: readonly Going[], before: Instant): Promise<void> {
    const positions = going.flatMap((each) => each.positions).sort();
    const data: DataOf<'RecordsRemoved'> = {
      kind,
      records: going.filter(({ isWhole }) => isWhole).length,
      events: positions.length,
      first_position: positions[0] ?? '',
      last_position: positions.at(-1) ?? '',
      older_than: toIso(before),
      streams: going.map((each) => ({ stream: each.stream, before: each.before })),
      audited: going.flatMap((each) => each.audited),
    };
    const stream = streams.retention();
    const appended = toNewEvents(stream, [{ type: 'RecordsRemoved', data }], this.#context());
    const { revision } = await this.#store.append(stream, appended, this.#revision);
    this.#revision = revision;
    await this.#cut(data);
  }

  /** Leaves in a stream what is to be left of it; null where it is not over, or there is nothing to take. */
  async #leave(kind: RetainedKind, stream: string, before: Instant): Promise<Going | null> {
    const { overFrom, ...kept } = retentionRules[kind];
    const all = await readWholeStream(this.#store, stream);
    const left = kept.left?.(all) ?? null;
    const isLeft = left !== null && all.at(-1)?.type === left.type;
    const events = isLeft ? all.slice(0, -1) : all;
    const last = events.at(-1);
    if (last === undefined || fromIso(last.metadata.occurredAt) >= before) return null;
    if (events.some(({ fault }) => fault !== undefined)) return null;
    const from = overFrom(events);
    if (from === null) return null;
    if (from >= before) {
      this.#expiring += 1;
      return null;
    }
    if (isLeft || left === null) {
      const some = left === null ? events.slice(0, MOST_EVENTS) : events;
      const end = some.at(-1) ?? last;
      return { ...placesOf(stream, some), before: end.revision + 1, isWhole: end === last };
    }
    const commandId = nameBasedId('retention', stream);
    const appended = toNewEvents(stream, [left], { ...this.#context(), commandId });
    try {
      const { revision } = await this.#store.append(stream, appended, last.revision);
      return { ...placesOf(stream, events), before: revision, isWhole: true };
    } catch (error) {
      // Something has happened to it after all: then it is not over yet.
      if (isConflict(error)) return null;
      throw error;
    }
  }

  async #cut(removed: DataOf<'RecordsRemoved'>): Promise<void> {
    await sideBySide(removed.streams, SIDE_BY_SIDE, ({ stream, before }) =>
      this.#store.truncate(stream, before),
    );
  }
}

function placesOf(
  stream: string,
  events: readonly RecordedEvent[],
): Pick<Going, 'stream' | 'positions' | 'audited'> {
  const byAgents = events.filter(({ metadata }) => metadata.actor !== 'service');
  const positions = events.map(({ position }) => position);
  return { stream, positions, audited: byAgents.map(({ position }) => position) };
}
