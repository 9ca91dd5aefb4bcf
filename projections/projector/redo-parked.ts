import { EventStoreError, type EventStore, type Position } from '../../domain/event-store.ts';
import type { RecordedEvent } from '../../domain/event-store.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { ParkedOrder } from '../../domain/vocabulary.ts';
import { foldBatch, touchingEvents, type PoisonedKey } from './fold-batch.ts';
import type { Projection } from '../read-model.ts';

/** A key's document as it became, up to where it could be folded. */
export interface Redone {
  /** The last event that it has taken. */
  readonly position: Position;
  readonly document: JsonObject | null;
  /** All up to here was looked at. */
  readonly upTo: Position;
  /** What it is held back for still; null for nothing. */
  readonly poisoned: PoisonedKey | null;
}

const PAGE = 1000;

/**
 * Folds what was held back for one key, in memory, with the same fold as ever. While the key is held back nobody else
 * changes its document.
 */
export class ParkedKey {
  readonly #store: EventStore;
  readonly #projection: Projection;
  readonly #parked: PoisonedKey;
  readonly #order: ParkedOrder;

  /** @param parts.order `skip` leaves the event out that the key is held back for, and takes what follows */
  constructor(parts: {
    readonly store: EventStore;
    readonly projection: Projection;
    readonly parked: PoisonedKey;
    readonly order: ParkedOrder;
  }) {
    this.#store = parts.store;
    this.#projection = parts.projection;
    this.#parked = parts.parked;
    this.#order = parts.order;
  }

  /**
   * From the event that it is held back for to the end of the log.
   * @param kept the document as it is
   * @throws EventStoreError where the log does not answer
   */
  async redo(
    kept: { readonly position: Position; readonly document: JsonObject | null },
    signal: AbortSignal,
  ): Promise<Redone> {
    const begun: Redone = { ...kept, upTo: this.#parked.position, poisoned: null };
    if (this.#order === 'skip') return this.goOn(begun, null, signal);
    try {
      const poison = await this.#findPoison();
      const first = this.#take(begun, poison === null ? [] : [poison], begun.upTo);
      return await this.goOn(first, null, signal);
    } catch (error) {
      if (!(error instanceof EventStoreError && error.code === 'CORRUPT_EVENT')) throw error;
      return { ...begun, poisoned: { ...this.#parked, error: error.message } };
    }
  }

  /** Goes on from an earlier result, to a position or (null) to the end of the log. */
  async goOn(before: Redone, to: Position | null, signal: AbortSignal): Promise<Redone> {
    let redone = before;
    if (redone.poisoned !== null || (to !== null && redone.upTo >= to)) return redone;
    const own = new AbortController();
    const messages = this.#store.subscribe({
      after: redone.upTo,
      prefixes: this.#projection.streams,
      signal: AbortSignal.any([signal, own.signal]),
    });
    try {
      for await (const message of messages) {
        if (message.kind === 'caught-up') return this.#take(redone, [], message.position);
        const { events } = message;
        const wanted = to === null ? events : events.filter(({ position }) => position <= to);
        redone = this.#take(redone, wanted, wanted.at(-1)?.position ?? redone.upTo);
        if (redone.poisoned !== null || wanted.length < events.length) return redone;
      }
      return redone;
    } finally {
      own.abort();
    }
  }

  #take(redone: Redone, events: readonly RecordedEvent[], upTo: Position): Redone {
    const { key } = this.#parked;
    const touching = touchingEvents(this.#projection, events, '')
      .filter(({ keys }) => keys.includes(key))
      .map((each) => ({ ...each, keys: [key] }));
    const { documents, poisoned } = foldBatch(
      this.#projection,
      touching,
      new Map([[key, redone]]),
      new Map(),
    );
    const [first = null] = poisoned;
    const { position, document } = documents[0] ?? redone;
    const end = upTo > redone.upTo ? upTo : redone.upTo;
    return { position, document, upTo: end, poisoned: first };
  }

  /** The event that it is held back for; null where it was taken from the log. */
  async #findPoison(): Promise<RecordedEvent | null> {
    const { stream, position } = this.#parked;
    for (let from = 0; ;) {
      const page = await this.#store.readStream(stream, { from, limit: PAGE });
      const found = page.find((event) => event.position === position);
      const last = page.at(-1);
      if (found !== undefined || last === undefined || page.length < PAGE) return found ?? null;
      from = last.revision + 1;
    }
  }
}
