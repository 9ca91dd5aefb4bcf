import {
  BEGINNING,
  type Landmark,
  type Position,
  type RecordedEvent,
} from '../../domain/event-store.ts';
import type { SkippedEvents } from '../../domain/operators/skipped-events.ts';
import type { StreamShare } from '../../domain/stream-share.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import {
  foldBatch,
  foldInto,
  keysBegun,
  keysTouched,
  touchingEvents,
  type FoldedBatch,
  type KnownDocument,
  type PoisonedKey,
  type TouchingEvent,
} from '../projector/fold-batch.ts';
import { parkedView, type Parking } from '../projector/parking.ts';
import type { Projection, ReadModel, ViewWriter } from '../read-model.ts';

type Batch = Parameters<ViewWriter['write']>[0];

const NO_DOCUMENTS: ReadonlyMap<string, KnownDocument> = new Map();

/** Ends a fill: retrying would not help. */
export class FinalFillError extends Error {}

/** A build met an event that cannot be folded. */
export class PoisonedFillError extends FinalFillError {
  readonly poisoned: PoisonedKey;

  constructor(projection: string, poisoned: PoisonedKey) {
    const { type, stream, position, error } = poisoned;
    super(`${projection} cannot fold ${type} of ${stream} at ${position}: ${error}`);
    this.name = 'PoisonedFillError';
    this.poisoned = poisoned;
  }
}

export interface GenerationWriterOptions {
  readonly readModel: ReadModel;
  readonly projection: Projection;
  readonly generation: number;
  readonly fence: number;
  readonly parking: Pick<Parking, 'of' | 'park'>;
  readonly telemetry: Telemetry;
  /**
   * Whether filling stops at an event that cannot be folded, because another generation can be read. If none can, one
   * parked key is better than no view.
   */
  readonly endsAtPoison: boolean;
  readonly skipped: () => SkippedEvents;
  /** In bulk: the share of the generation that is filled. Default: the whole generation. */
  readonly share?: StreamShare | undefined;
  readonly onPassed: (position: Position) => void;
}

/**
 * Writes one generation of one view: takes events in the log's order and folds them into its documents. One call at a
 * time. After an error, call `open` again; writing then continues from the position of the documents.
 */
export class GenerationWriter {
  readonly projection: Projection;
  readonly generation: number;
  handled = 0;
  /** How often a skipped event was left out of a document because it cannot be folded here either. */
  leftOut = 0;
  /** `occurredAt` of the last event it has passed. */
  lastOccurredAt: string | null = null;
  readonly #options: GenerationWriterOptions;
  #writer: ViewWriter | null = null;
  #bulk = false;
  #written: Position = BEGINNING;
  /**
   * The position up to which events were taken, at or after {@link #written}. Events between the two touched no
   * document.
   */
  #passed: Position = BEGINNING;
  /** The last event of any stream since it was opened. */
  #landmark: Landmark | undefined;
  #parked = new Map<string, Position>();
  /** In bulk: folded documents that are not written yet. */
  #unwritten = new Map<string, KnownDocument>();
  /** In bulk mode: keys whose streams have started since the last {@link flush}. None of them is stored. */
  #begun = new Set<string>();
  #unwrittenEvents = 0;
  #unwrittenLeftOut = 0;
  /** In bulk mode: the last write by {@link flush}. The store may later report that it was lost. */
  #flushed = { to: BEGINNING, events: 0, leftOut: 0 };

  constructor(options: GenerationWriterOptions) {
    this.projection = options.projection;
    this.generation = options.generation;
    this.#options = options;
  }

  /** The documents contain all events up to here. */
  get passed(): Position {
    return this.#passed;
  }

  /** Whether the stored checkpoint is behind {@link passed}. */
  get isUnwritten(): boolean {
    return this.#written !== this.#passed;
  }

  /** The share that it fills; null: the whole generation, also after the other shares were merged. */
  get share(): StreamShare | null {
    return this.#writer?.share ?? null;
  }

  /** In bulk: events folded since the last {@link flush}. */
  get unwrittenEvents(): number {
    return this.#unwrittenEvents;
  }

  get parked(): number {
    return this.#parked.size;
  }

  /** Opens or reopens the generation; in bulk while nobody reads it. */
  async open(bulk: boolean): Promise<void> {
    await this.close();
    const { readModel, fence } = this.#options;
    const { projection, generation } = this;
    const share = bulk ? this.#options.share : undefined;
    this.#bulk = bulk;
    // These events come again.
    this.handled -= this.#unwrittenEvents;
    this.leftOut -= this.#unwrittenLeftOut;
    this.#forgetUnwritten();
    this.#writer = await readModel.openWriter(projection, { generation, bulk, fence, share });
    await this.#begin(this.#writer);
    if (this.#written < this.#flushed.to) {
      this.handled -= this.#flushed.events;
      this.leftOut -= this.#flushed.leftOut;
    }
    this.#flushed = { to: BEGINNING, events: 0, leftOut: 0 };
  }

  /** Share 0 merges the other shares, which are closed at the same position, and writes its own folded documents. */
  async takeIn(): Promise<void> {
    const writer = this.#openWriter();
    await writer.mergeShares?.();
    await this.#begin(writer);
  }

  async #begin(writer: ViewWriter): Promise<void> {
    this.#written = await writer.checkpoint();
    this.#passed = this.#written;
    this.#landmark = undefined;
    this.#parked = await this.#options.parking.of(parkedView(this.projection, this.generation));
    this.#options.onPassed(this.#passed);
  }

  /**
   * Takes events up to `upTo`; passes over other views' events and those taken before. In bulk the documents stay in
   * memory until {@link flush}.
   *
   * @returns how many of them are this view's
   * @throws PoisonedFillError in bulk, if it ends at poison; ReadModelError
   */
  async take(events: readonly RecordedEvent[], upTo: Position): Promise<number> {
    const { projection } = this;
    const touching = touchingEvents(projection, events, this.#passed);
    const last = events.at(-1);
    if (last !== undefined && last.position > this.#passed) this.#landmark = landmarkOf(last);
    if (touching.length > 0) {
      if (this.#bulk) await this.#foldInBulk(touching);
      else await this.#foldAndWrite(touching, upTo);
      this.handled += touching.length;
    }
    if (upTo > this.#passed) {
      this.#passed = upTo;
      this.lastOccurredAt = events.at(-1)?.metadata.occurredAt ?? this.lastOccurredAt;
      this.#options.onPassed(upTo);
    }
    return touching.length;
  }

  async #foldAndWrite(touching: readonly TouchingEvent[], upTo: Position): Promise<void> {
    const known = await this.#openWriter().load(keysTouched(touching));
    const skipped = this.#options.skipped();
    const folded = foldBatch(this.projection, touching, known, this.#parked, skipped);
    await this.#settle(folded);
    const { documents } = folded;
    if (documents.length === 0) return;
    const to = upTo > this.#passed ? upTo : this.#passed;
    await this.#write(documents, to);
  }

  async #foldInBulk(touching: readonly TouchingEvent[]): Promise<void> {
    const { projection } = this;
    if (projection.ownStreams === true) {
      for (const key of keysBegun(touching)) this.#begun.add(key);
    }
    const known = await this.#known(touching);
    const skipped = this.#options.skipped();
    const held = foldInto(this.#unwritten, projection, touching, known, this.#parked, skipped);
    await this.#settle(held);
    this.#unwrittenEvents += touching.length;
    this.#unwrittenLeftOut += held.leftOut.length;
  }

  /** Writes the documents that were folded in bulk, and the checkpoint. */
  async flush(): Promise<void> {
    if (!this.isUnwritten) return;
    const to = this.#passed;
    const documents = Array.from(this.#unwritten, ([key, { position, document }]) => {
      return { key, position, document, isFirst: this.#begun.has(key) };
    });
    await this.#write(documents, to);
    this.#flushed = { to, events: this.#unwrittenEvents, leftOut: this.#unwrittenLeftOut };
    this.#forgetUnwritten();
  }

  async #write(documents: Batch['documents'], to: Position): Promise<void> {
    const landmark = this.#landmark;
    await this.#openWriter().write({ documents, from: this.#written, to, landmark });
    this.#written = to;
  }

  /** Reads its documents, to compare generations. */
  get documents(): Pick<ViewWriter, 'page' | 'load' | 'count'> {
    return this.#openWriter();
  }

  /** Ends bulk writing: creates the indexes and syncs to disk. */
  async finish(): Promise<void> {
    await this.flush();
    await this.#openWriter().finish();
  }

  async close(): Promise<void> {
    const writer = this.#writer;
    this.#writer = null;
    await writer?.close();
  }

  /** In bulk: the stored documents that these events change, without those that are newer in memory. */
  async #known(touching: readonly TouchingEvent[]): Promise<ReadonlyMap<string, KnownDocument>> {
    const missing = new Set<string>();
    for (const { keys } of touching) {
      for (const key of keys) {
        if (!this.#unwritten.has(key) && !this.#begun.has(key)) missing.add(key);
      }
    }
    return missing.size === 0 ? NO_DOCUMENTS : this.#openWriter().load([...missing]);
  }

  #forgetUnwritten(): void {
    this.#unwritten = new Map();
    this.#begun = new Set();
    this.#unwrittenEvents = 0;
    this.#unwrittenLeftOut = 0;
  }

  #reportLeftOut(leftOut: readonly PoisonedKey[]): void {
    const { projection, generation } = this;
    const { telemetry } = this.#options;
    this.leftOut += leftOut.length;
    for (const each of leftOut) {
      telemetry.count('projection_left_out_total', { projection: projection.name });
      const fields = { projection: projection.name, generation, ...each };
      telemetry.log.warn('left out a skipped event that cannot be folded', fields);
    }
  }

  async #settle({ poisoned, leftOut }: Pick<FoldedBatch, 'poisoned' | 'leftOut'>): Promise<void> {
    const [first] = poisoned;
    if (first) await this.#park(first, poisoned);
    if (leftOut.length > 0) this.#reportLeftOut(leftOut);
  }

  /** Before the checkpoint passes the event: a crash in between must not lose the gap. */
  async #park(first: PoisonedKey, poisoned: readonly PoisonedKey[]): Promise<void> {
    const { projection, generation } = this;
    const { parking, telemetry, endsAtPoison } = this.#options;
    if (this.#bulk && endsAtPoison) throw new PoisonedFillError(projection.name, first);
    await parking.park(parkedView(projection, generation), poisoned);
    for (const each of poisoned) {
      this.#parked.set(each.key, each.position);
      telemetry.count('projection_parked_total', { projection: projection.name });
      telemetry.log.error('could not fold an event; its key is parked', {
        projection: projection.name,
        ...each,
      });
    }
  }

  #openWriter(): ViewWriter {
    if (this.#writer === null) throw new Error(`${this.projection.name} is not open`);
    return this.#writer;
  }
}

/** A copy, because a reference would keep the event in memory. */
function landmarkOf({ stream, revision, id, createdAt }: RecordedEvent): Landmark {
  return { stream, revision, id, createdAt };
}
