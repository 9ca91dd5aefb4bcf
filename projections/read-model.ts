import type { Landmark, Position, RecordedEvent } from '../domain/event-store.ts';
import type { JsonObject } from '../domain/json.ts';
import type { StreamShare } from '../domain/stream-share.ts';

/**
 * The read model's port. Two adapters implement it (`stores/sqlite`, `stores/mongodb`), and one contract
 * suite (`test/contracts/read-model.ts`) says what both must do.
 */

/**
 * A view of the log: which streams it follows, which documents an event changes, and how. Pure.
 * A document is a plain JSON object; where it is kept, its key and position stand beside it.
 */
export interface Projection<D extends JsonObject = JsonObject> {
  /** Of `[a-z_]+`. */
  readonly name: string;
  /** The shape of the documents and their fields; a new number makes a new generation by itself. */
  readonly schema: number;
  /**
   * Older schemas that this code can read, and fold on, as they are: their documents lack at most fields that it can do
   * without, and they have the same queried fields and tallies. What an older release left of the view is then read,
   * and fed, until the first generation of the new shape is made; else reads are refused meanwhile.
   */
  readonly readsOlder?: readonly number[];
  /** Prefixes of the streams it follows. */
  readonly streams: readonly string[];
  /**
   * Each document is made of the events of one stream, and of no other's: there is none before that stream's first event,
   * which saves looking for it when a generation is filled. Default: false.
   */
  readonly ownStreams?: boolean;
  /** The queried fields: top-level fields of the document, by what they hold. */
  readonly fields: Readonly<Record<string, FieldKind>>;
  /** Each is the fields of one index, in order: equality first, then sort, then range; the key is added last. */
  readonly indexes: readonly (readonly string[])[];
  /**
   * For each index, in their order, fields that stand at its end, so that they are looked at there and not in the
   * documents: short, and best such that never change. An adapter may leave them out.
   */
  readonly covered?: readonly (readonly string[])[];
  /**
   * Fields that are null in many documents, which then stand in no index that has them: for lists that ask for a value
   * of theirs, or a span of values. An adapter may have those documents there all the same.
   */
  readonly sparse?: readonly string[];
  /**
   * By field, how texts begin that this view is not asked for, as they are found in the log: they count as null in the
   * field, and so stand in no index that has it where it is {@link sparse}. The documents have them. An adapter may have
   * them in the field all the same.
   */
  readonly unasked?: Readonly<Record<string, string>>;
  /** Numbers of documents that are kept, so that totals of long lists cost nothing. An adapter may leave them out. */
  readonly tallies?: readonly Tally[];
  /**
   * Whether such a document is done with: nobody expects an event that changes it, so that it is not worth remembering.
   * Default: none is.
   */
  isOver?(document: D): boolean;
  /** Keys of the documents that an event changes; empty for none. */
  keys(event: RecordedEvent): readonly string[];
  /**
   * The document after the event; null when there is none (any more). Must not change its input.
   * @param own the document was made by `evolve` itself, of an earlier event of the same batch, and nobody else has it:
   *   what `evolve` has made within it may go on into the next document as it is, and be changed. Default: false
   */
  evolve(document: D | null, event: RecordedEvent, key: string, own?: boolean): D | null;
}

/** How many documents there are by the values of some fields, and by the hour of one that holds timestamps. */
export interface Tally {
  readonly fields: readonly string[];
  readonly hourOf?: string;
}

/** `text` and `number` and `boolean` hold that or null; `text-list` is an array of text (for `has`). */
export type FieldKind = 'text' | 'number' | 'boolean' | 'text-list';

export type Filter =
  | { readonly field: string; readonly op: 'eq'; readonly value: string | number | boolean | null }
  | {
      readonly field: string;
      readonly op: 'gt' | 'gte' | 'lt' | 'lte';
      readonly value: string | number;
    }
  | { readonly field: string; readonly op: 'in'; readonly value: readonly (string | number)[] }
  /** A text that contains the value, upper and lower case alike (ASCII). */
  | { readonly field: string; readonly op: 'contains'; readonly value: string }
  /** A text-list that holds the value. */
  | { readonly field: string; readonly op: 'has'; readonly value: string };

export interface Sort {
  readonly field: string;
  readonly direction: 'ascending' | 'descending';
}

export interface Query {
  readonly filters: readonly Filter[];
  /** Ends with the key by itself, in the direction of the last sort; so the order is total. */
  readonly sort: readonly Sort[];
  readonly limit: number;
  /** How many to leave out from the start; default 0. Not together with `after`. */
  readonly offset?: number;
  /** Go on strictly after this place: values of the sort fields, then the key. At constant cost. */
  readonly after?: {
    readonly values: readonly (string | number | boolean | null)[];
    readonly key: string;
  };
}

/** A document as it is kept. `position`: the last event that it has taken. */
export interface KeptDocument<D extends JsonObject = JsonObject> {
  readonly key: string;
  readonly position: Position;
  readonly document: D;
}

/** What is left out of large documents in a list. Smaller documents come as they are kept. */
export interface Cut {
  /** Bytes of JSON text up to which a document, and each of its values, stays whole. */
  readonly over: number;
  /** Where the values stand that may be cut; `*` is each item of a list. A cut value is `{truncated, size_bytes}`. */
  readonly values: readonly {
    readonly path: readonly string[];
    /** Whether what stands for it has its beginning as `preview`. */
    readonly preview: boolean;
  }[];
  /** Top-level fields that the list does not show: they may be missing. Default: none. */
  readonly without?: readonly string[];
}

/** What a page of a list is made of. */
export interface ListQuery extends Query {
  /** What is counted; null for nothing. Default: the query's own filters. */
  readonly counted?: readonly Filter[] | null;
  /** Most bytes of JSON text of the documents together; the first is given whatever its size. Default: no limit. */
  readonly mostBytes?: number;
  /** Default: every document comes whole. */
  readonly cut?: Cut;
  /** Whether page and position need not be of one instant, as in an export: it is then read once. Default: false. */
  readonly isLoose?: boolean;
}

/** A document of a list, unparsed: many large ones are best parsed one after the other. */
export interface ListedDocument {
  readonly key: string;
  /** JSON. */
  readonly text: string;
}

/** A page, its total and its position, all of one instant and one generation. */
export interface Listed {
  readonly documents: readonly ListedDocument[];
  /** Whether more documents follow: past the limit, or past the bytes. */
  readonly hasMore: boolean;
  /** How many documents pass `counted`; null where nothing was counted. */
  readonly total: number | null;
  /** The checkpoint of the generation at that instant. */
  readonly position: Position;
}

/** What the API, the scheduler and the workers read. Never blocks the event loop for long. */
export interface ReadModel {
  /** @throws ReadModelError `UNAVAILABLE` */
  get<D extends JsonObject>(
    projection: Projection<D>,
    key: string,
  ): Promise<KeptDocument<D> | null>;

  find<D extends JsonObject>(
    projection: Projection<D>,
    query: Query,
  ): Promise<readonly KeptDocument<D>[]>;

  /** How many documents pass the filters. */
  count<D extends JsonObject>(
    projection: Projection<D>,
    filters: readonly Filter[],
  ): Promise<number>;

  /**
   * Reads a page of a list with its total and its position from one snapshot of the live generation.
   *
   * @throws ReadModelError `NO_VIEW`, `UNAVAILABLE`
   */
  list(projection: Projection, query: ListQuery): Promise<Listed>;

  /** Up to which position of the log the live generation has folded everything; `BEGINNING` for nothing. */
  checkpoint(projection: Projection): Promise<Position>;

  /**
   * An event of the log that the live generation was made of, the last that it was given at or before its checkpoint: by
   * that it is told from a view of another log. null where there is none, as an older release has written it.
   */
  landmark(projection: Projection): Promise<Landmark | null>;

  /**
   * Tells, in less than it takes to read a document, that nothing has changed: as long as it says the same, every
   * document that reads go to is as it was. An adapter that can't say so leaves it out.
   *
   * @throws ReadModelError `NO_VIEW`, `UNAVAILABLE`
   */
  version?(projection: Projection): string;

  /** Opens a generation for the projector to write. */
  openWriter(projection: Projection, options: WriterOptions): Promise<ViewWriter>;

  /** Which generation reads go to; null before the first was switched to. Kept per (name, schema). */
  liveGeneration(projection: Projection): Promise<number | null>;

  /** Lets reads go to a generation, at once and in every process within a second. */
  switchTo(projection: Projection, generation: number): Promise<void>;

  /** Lets reads go nowhere, in every process within a second, until the next switch. Nothing where there is no view. */
  withdraw(projection: Projection): Promise<void>;

  /** The shapes (schema numbers) of which there is a generation, whichever the projection's own is; ascending. */
  schemas(projection: Projection): Promise<readonly number[]>;

  /** Generations that exist, ascending. */
  generations(projection: Projection): Promise<readonly number[]>;

  /** Throws away a generation that is not live. */
  discard(projection: Projection, generation: number): Promise<void>;

  /** Whether it answers; resolves or throws `UNAVAILABLE`, within two seconds. */
  ping(): Promise<void>;

  close(): Promise<void>;
}

export interface WriterOptions {
  readonly generation: number;
  /**
   * For filling a generation that nobody reads yet: no indexes and no waiting for the disk until
   * `finish()`.
   */
  readonly bulk: boolean;
  /**
   * One of several writers that fill a generation side by side, each with the documents of one share of the streams: in
   * bulk, of a projection with {@link Projection.ownStreams}. That of share 0 writes the generation itself, and takes in
   * what the others have made. An adapter that can't do so refuses it. Default: the writer's is the whole.
   */
  readonly share?: StreamShare | undefined;
  /** The writer's lease: a smaller number than one seen before is refused. */
  readonly fence: number;
}

/** The projector's side of one generation. One writer at a time, or one of each share; two at once do no harm. */
export interface ViewWriter {
  /** What of the generation is written: all of it (null) also where it was opened for a share and has the others by now. */
  readonly share?: StreamShare | null;

  /**
   * Share 0 takes in what the writers of all others have made, which are closed, and at the same checkpoint. From then on
   * all of the generation is written. All or nothing.
   *
   * @throws ReadModelError `UNAVAILABLE` where one is not there, or elsewhere; `FENCED`
   */
  takeIn?(): Promise<void>;

  /** Up to where this generation has folded everything. */
  checkpoint(): Promise<Position>;

  /** The documents of these keys, as far as they exist; also ones deleted since, as a tombstone (document null). */
  load(
    keys: readonly string[],
  ): Promise<
    ReadonlyMap<string, { readonly position: Position; readonly document: JsonObject | null }>
  >;

  /**
   * Writes documents (null deletes), then the checkpoint. A document that is kept at the same or a later
   * position stays as it is, so a repeated batch changes nothing.
   *
   * @throws ReadModelError `FENCED` when a writer with a larger fence has written the checkpoint, or the
   *   checkpoint is not `from` any more: reopen and go on from what it is.
   */
  write(batch: {
    readonly documents: readonly {
      readonly key: string;
      readonly position: Position;
      readonly document: JsonObject | null;
      /** There is none of this key yet, which need not be looked for. Only in bulk. Default: false. */
      readonly isFirst?: boolean;
    }[];
    /** Where the checkpoint was. */
    readonly from: Position;
    /** Where it is after this batch. */
    readonly to: Position;
    /** The last event at or before `to` that the writer was given, of whatever stream; default: as it was. */
    readonly landmark?: Landmark | undefined;
  }): Promise<void>;

  /** The documents after a key (null: from the first on), by key; to compare generations. */
  page(after: string | null, limit: number): Promise<readonly KeptDocument[]>;

  /** How many documents there are. */
  count(): Promise<number>;

  /** Ends bulk filling: indexes, then sync. Nothing when it wasn't `bulk`. */
  finish(): Promise<void>;

  close(): Promise<void>;
}

export const readModelErrorCodes = ['UNAVAILABLE', 'FENCED', 'NO_VIEW'] as const;
export type ReadModelErrorCode = (typeof readModelErrorCodes)[number];

/** `NO_VIEW`: the projection has no live generation yet. */
export class ReadModelError extends Error {
  readonly code: ReadModelErrorCode;

  constructor(code: ReadModelErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'ReadModelError';
    this.code = code;
  }
}
