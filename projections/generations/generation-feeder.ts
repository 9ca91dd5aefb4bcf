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
import type { KeptDocument, Projection, ReadModel, ViewWriter } from '../read-model.ts';

type Batch = Parameters<ViewWriter['write']>[0];

const NOTHING_KNOWN: ReadonlyMap<string, KnownDocument> = new Map();

/** A filling beside what is read met an event that can't be folded. It goes no further. */
export class PoisonedFillError extends Error {
  readonly poisoned: PoisonedKey;

  constructor(projection: string, poisoned: PoisonedKey) {
    const { type, stream, position, error } = poisoned;
    super(`${projection} can't fold ${type} of ${stream} at ${position}: ${error}`);
    this.name = 'PoisonedFillError';
    this.poisoned = poisoned;
  }
}

export interface FeederOptions {
  readonly readModel: ReadModel;
  readonly projection: Projection;
  readonly generation: number;
  readonly fence: number;
  readonly parking: Pick<Parking, 'of' | 'park'>;
  readonly telemetry: Telemetry;
  /**
   * Whether a filling ends at an event that can't be folded: there is something else to read. Where there is not, one
   * key that is held back is better than no view at all.
   */
  readonly endsAtPoison: boolean;
  /** Events that an operator had left out. */
  readonly skipped: () => SkippedEvents;
  /** In bulk it fills but one share of the generation. Default: all of it. */
  readonly share?: StreamShare | undefined;
  /** Told whenever everything up to a position is in the documents. */
  readonly onPassed: (position: Position) => void;
}

/**
 * Feeds one generation of one view: takes events in the log's order, folds them into its documents, and
 * knows how far it is. One call at a time. After an error call `open` again: it then is where the
 * documents are.
 */
export class GenerationFeeder {
  readonly projection: Projection;
  readonly generation: number;
  /** Events folded since it was made. */
  handled = 0;
  /** How often an event was left out of a document, as it was skipped before and can't be folded here either. */
  leftOut = 0;
  /** `occurredAt` of the last event it has passed. */
  lastOccurredAt: string | null = null;
  readonly #options: FeederOptions;
  #writer: ViewWriter | null = null;
  #bulk = false;
  /** The checkpoint as it is kept. */
  #written: Position = BEGINNING;
  /** Everything up to here is in the documents; what lies between touched none of them. */
  #passed: Position = BEGINNING;
  /** The last event that it was given since it was opened, of whatever stream. */
  #landmark: Landmark | undefined;
  #parked = new Map<string, Position>();
  /** In bulk: documents that have been folded, and not written yet. */
  #unwritten = new Map<string, KnownDocument>();
  /** In bulk: keys whose streams have begun since the last {@link flush}; none of them has been written. */
  #begun = new Set<string>();
  #unwrittenEvents = 0;
  #unwrittenLeftOut = 0;

  constructor(options: FeederOptions) {
    this.projection = options.projection;
    this.generation = options.generation;
    this.#options = options;
  }

  /** Everything up to here is in the documents. */
  get passed(): Position {
    return this.#passed;
  }

  /** Whether the kept checkpoint is behind what has been passed. */
  get isUnwritten(): boolean {
    return this.#written !== this.#passed;
  }

  /** What it fills of the generation; null: all of it, also where the other shares are in it by now. */
  get share(): StreamShare | null {
    return this.#writer?.share ?? null;
  }

  /** In bulk: events that have been folded since the last {@link flush}. */
  get unwrittenEvents(): number {
    return this.#unwrittenEvents;
  }

  /** Keys that are held back. */
  get parked(): number {
    return this.#parked.size;
  }

  /** Opens the generation (again), in bulk while nobody reads it. */
  async open(bulk: boolean): Promise<void> {
    await this.close();
    const { readModel, fence } = this.#options;
    const { projection, generation } = this;
    const share = bulk ? this.#options.share : undefined;
    this.#bulk = bulk;
    // It comes again.
    this.handled -= this.#unwrittenEvents;
    this.leftOut -= this.#unwrittenLeftOut;
    this.#forgetUnwritten();
    this.#writer = await readModel.openWriter(projection, { generation, bulk, fence, share });
    await this.#begin(this.#writer);
  }

  /** Share 0 takes in the others, which are filled up to the same position, and closed. What it has folded is written. */
  async takeIn(): Promise<void> {
    const writer = this.#openWriter();
    await writer.takeIn?.();
    await this.#begin(writer);
  }

  /** From where the documents are. */
  async #begin(writer: ViewWriter): Promise<void> {
    this.#written = await writer.checkpoint();
    this.#passed = this.#written;
    this.#landmark = undefined;
    this.#parked = await this.#options.parking.of(parkedView(this.projection, this.generation));
    this.#options.onPassed(this.#passed);
  }

  /**
   * Takes events; those of other views' streams, and those taken before, are passed over. Afterwards it has
   * passed `upTo`. In bulk the documents stay in memory until {@link flush}.
   *
   * @returns how many of them are this view's
   * @throws PoisonedFillError in bulk, where it ends at one; ReadModelError
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

  /** Folds events, and writes what they have changed. */
  async #foldAndWrite(touching: readonly TouchingEvent[], upTo: Position): Promise<void> {
    const known = await this.#openWriter().load(keysTouched(touching));
    const skipped = this.#options.skipped();
    const folded = foldBatch(this.projection, touching, known, this.#parked, skipped);
    await this.#holdBack(folded);
    const { documents } = folded;
    if (documents.length === 0) return;
    const to = upTo > this.#passed ? upTo : this.#passed;
    await this.#write(documents, to);
  }

  /** Folds events into what has been folded and not written yet: all up to the next {@link flush} is one batch. */
  async #foldInBulk(touching: readonly TouchingEvent[]): Promise<void> {
    const { projection } = this;
    if (projection.ownStreams === true) {
      for (const key of keysBegun(touching)) this.#begun.add(key);
    }
    const known = await this.#known(touching);
    const skipped = this.#options.skipped();
    const held = foldInto(this.#unwritten, projection, touching, known, this.#parked, skipped);
    await this.#holdBack(held);
    this.#unwrittenEvents += touching.length;
    this.#unwrittenLeftOut += held.leftOut.length;
  }

  /** Writes what has been folded in bulk, and keeps the checkpoint where it has come. */
  async flush(): Promise<void> {
    if (!this.isUnwritten) return;
    const to = this.#passed;
    const documents = Array.from(this.#unwritten, ([key, { position, document }]) => {
      return { key, position, document, isFirst: this.#begun.has(key) };
    });
    await this.#write(documents, to);
    this.#forgetUnwritten();
  }

  async #write(documents: Batch['documents'], to: Position): Promise<void> {
    const landmark = this.#landmark;
    await this.#openWriter().write({ documents, from: this.#written, to, landmark });
    this.#written = to;
  }

  /** Its documents after a key, by key. */
  page(after: string | null, limit: number): Promise<readonly KeptDocument[]> {
    return this.#openWriter().page(after, limit);
  }

  /** Its documents of these keys, as far as there are any. */
  load(keys: readonly string[]): ReturnType<ViewWriter['load']> {
    return this.#openWriter().load(keys);
  }

  /** How many documents it has. */
  count(): Promise<number> {
    return this.#openWriter().count();
  }

  /** Ends bulk feeding: indexes, and everything on the disk. */
  async finish(): Promise<void> {
    await this.flush();
    await this.#openWriter().finish();
  }

  async close(): Promise<void> {
    const writer = this.#writer;
    this.#writer = null;
    await writer?.close();
  }

  /** In bulk: the kept documents that these events change, as far as they are not folded on already. */
  async #known(touching: readonly TouchingEvent[]): Promise<ReadonlyMap<string, KnownDocument>> {
    const missing = new Set<string>();
    for (const { keys } of touching) {
      for (const key of keys) {
        if (!this.#unwritten.has(key) && !this.#begun.has(key)) missing.add(key);
      }
    }
    return missing.size === 0 ? NOTHING_KNOWN : this.#openWriter().load([...missing]);
  }

  #forgetUnwritten(): void {
    this.#unwritten = new Map();
    this.#begun = new Set();
    this.#unwrittenEvents = 0;
    this.#unwrittenLeftOut = 0;
  }

  #sayLeftOut(leftOut: readonly PoisonedKey[]): void {
    const { projection, generation } = this;
    const { telemetry } = this.#options;
    this.leftOut += leftOut.length;
    for (const each of leftOut) {
      telemetry.count('projection_left_out_total', { projection: projection.name });
      const fields = { projection: projection.name, generation, ...each };
      telemetry.log.warn('an event that was skipped is left out', fields);
    }
  }

  async #holdBack({ poisoned, leftOut }: Pick<FoldedBatch, 'poisoned' | 'leftOut'>): Promise<void> {
    const [first] = poisoned;
    if (first) await this.#park(first, poisoned);
    if (leftOut.length > 0) this.#sayLeftOut(leftOut);
  }

  /** Before the checkpoint passes the event, so that a crash between can't lose the gap out of sight. */
  async #park(first: PoisonedKey, poisoned: readonly PoisonedKey[]): Promise<void> {
    const { projection, generation } = this;
    const { parking, telemetry } = this.#options;
    const { endsAtPoison } = this.#options;
    if (this.#bulk && endsAtPoison) throw new PoisonedFillError(projection.name, first);
    await parking.park(parkedView(projection, generation), poisoned);
    for (const each of poisoned) {
      this.#parked.set(each.key, each.position);
      telemetry.count('projection_parked_total', { projection: projection.name });
      telemetry.log.error('an event could not be folded; its key is held back', {
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

/** Nothing of the event itself is held. */
function landmarkOf({ stream, revision, id, createdAt }: RecordedEvent): Landmark {
  return { stream, revision, id, createdAt };
}
