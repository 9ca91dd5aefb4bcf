import type { Landmark, Position, RecordedEvent } from '../domain/event-store.ts';
import type { JsonObject } from '../domain/json.ts';
import type { StreamShare } from '../domain/stream-share.ts';

/**
 * The read model's port, with two adapters (`stores/sqlite`, `stores/mongodb`) and one contract suite
 * (`test/contracts/read-model.ts`).
 */

/**
 * A view of the log: which streams it follows, which documents an event changes, and how. Pure. A document is a plain
 * JSON object, stored with its key and position.
 */
export interface Projection<D extends JsonObject = JsonObject> {
  /** Of `[a-z_]+`. */
  readonly name: string;
  /** The schema version of the documents and fields. A new number triggers the build of a new generation. */
  readonly schema: number;
  /**
   * Older schemas that this code can read and fold: their documents lack only optional fields, and have the same
   * queried fields and tallies, apart from {@link addedFields}. A view of an older release is read and updated until
   * the new shape is built. Without this list, reads are rejected until then.
   */
  readonly readsOlder?: readonly number[];
  /**
   * For each queried field, the first schema that has it. Older schemas in `readsOlder` are read and updated without
   * it. The field is null in all documents of such a schema, so a query for another value is rejected until the view is
   * built.
   */
  readonly addedFields?: Readonly<Record<string, number>>;
  /** Prefixes of the streams that it follows. */
  readonly streams: readonly string[];
  /**
   * Each document is built from the events of one stream. Filling then needs no lookup before a stream's first event.
   * Default: false.
   */
  readonly ownStreams?: boolean;
  /** The queried fields: top-level fields of the document and their kinds. */
  readonly fields: Readonly<Record<string, FieldKind>>;
  /** The fields of each index, in order: equality, then sort, then range; the key is added last. */
  readonly indexes: readonly (readonly string[])[];
  /**
   * Per index, fields appended to it so that queries need not read the documents. They should be short and rarely
   * change. An adapter may leave them out.
   */
  readonly covered?: readonly (readonly string[])[];
  /**
   * Fields that are null in many documents. Their indexes leave those documents out; queries ask for a value or a range
   * of values. An adapter may still index them.
   */
  readonly sparse?: readonly string[];
  /**
   * By field, the prefix of strings for which nobody queries this view, because those are read from the log. Such
   * strings count as null in the field and in its {@link sparse} index; the documents keep them. An adapter may still
   * index them.
   */
  readonly unqueried?: Readonly<Record<string, string>>;
  /** Document counts that are maintained, so that totals of long lists are cheap. An adapter may leave them out. */
  readonly tallies?: readonly Tally[];
  /** Whether a document is final: no further event is expected, so it need not be cached. Default: none is. */
  isFinal?(document: D): boolean;
  keys(event: RecordedEvent): readonly string[];
  /**
   * The document after the event; null if there is none. Must not change its input.
   * @param own whether `evolve` created the document in this batch, and no other code holds it. It may then be changed
   *   in place. Default: false
   */
  evolve(document: D | null, event: RecordedEvent, key: string, own?: boolean): D | null;
}

export interface Tally {
  readonly fields: readonly string[];
  /** Fields whose nulls are also counted, because their strings are never empty. Default: none. */
  readonly nullable?: readonly string[];
  readonly hourOf?: string;
}

/** `text`, `number` and `boolean` hold such a value or null; `text-list` is an array of strings (for `has`). */
export type FieldKind = 'text' | 'number' | 'boolean' | 'text-list';

export type Filter =
  | { readonly field: string; readonly op: 'eq'; readonly value: string | number | boolean | null }
  | {
      readonly field: string;
      readonly op: 'gt' | 'gte' | 'lt' | 'lte';
      readonly value: string | number;
    }
  | { readonly field: string; readonly op: 'in'; readonly value: readonly (string | number)[] }
  /** A string that contains the value, ignoring ASCII case. */
  | { readonly field: string; readonly op: 'contains'; readonly value: string }
  /** A list that holds the value. */
  | { readonly field: string; readonly op: 'has'; readonly value: string };

export interface Sort {
  readonly field: string;
  readonly direction: 'ascending' | 'descending';
}

export interface Query {
  readonly filters: readonly Filter[];
  /** The key is added last, in the direction of the last sort, so the order is total. */
  readonly sort: readonly Sort[];
  readonly limit: number;
  /** Documents to leave out from the start; default 0. Not together with `after`. */
  readonly offset?: number;
  /** Continue strictly after this place: values of the sort fields, then the key. Constant cost. */
  readonly after?: {
    readonly values: readonly FieldValue[];
    readonly key: string;
  };
}

/** A stored value of a queried field. */
export type FieldValue = string | number | boolean | null;

/** A query for the values of queried fields of all documents that match, in no order. */
export interface ValuesQuery {
  readonly filters: readonly Filter[];
  /** The fields to read: queried fields, except lists of strings. */
  readonly fields: readonly string[];
}

/** A document's key and its values of the requested fields, in the requested order; null for a missing value. */
export interface FieldValues {
  readonly key: string;
  readonly values: readonly FieldValue[];
}

/** A stored document. `position`: the last event that it has taken. */
export interface ViewDocument<D extends JsonObject = JsonObject> {
  readonly key: string;
  readonly position: Position;
  readonly document: D;
}

/** The parts that lists leave out of large documents. Smaller documents are returned whole. */
export interface Cut {
  /** A document, and each of its values, stays whole up to this many bytes of JSON. */
  readonly maxBytes: number;
  /** Paths of the values that may be cut; `*` is each item of a list. A cut value becomes `{truncated, size_bytes}`. */
  readonly values: readonly {
    readonly path: readonly string[];
    /** Whether the cut value keeps its beginning as `preview`. */
    readonly preview: boolean;
  }[];
  /** Top-level fields that the list does not show. Default: none. */
  readonly omitted?: readonly string[];
}

export interface ListQuery extends Query {
  /** The filters of the total; null: no total. Default: the query's own filters. */
  readonly counted?: readonly Filter[] | null;
  /** Bytes of JSON of all documents together; the first one is always included. Default: unlimited. */
  readonly mostBytes?: number;
  readonly cut?: Cut;
  /** Whether page and position may be of different instants, as in an export. This saves a read. Default: false. */
  readonly isLoose?: boolean;
}

/** A document of a list, unparsed, because large documents are best parsed one after the other. */
export interface ListedDocument {
  readonly key: string;
  readonly text: string;
}

/** A page, its total and its position, all of one instant and one generation. */
export interface Listed {
  readonly documents: readonly ListedDocument[];
  /** Whether more documents follow, beyond the limit or the bytes. */
  readonly hasMore: boolean;
  readonly total: number | null;
  readonly position: Position;
}

/** Read by the API, the scheduler and the workers. Never blocks the event loop for long. */
export interface ReadModel {
  /** @throws ReadModelError `UNAVAILABLE` */
  get<D extends JsonObject>(
    projection: Projection<D>,
    key: string,
  ): Promise<ViewDocument<D> | null>;

  find<D extends JsonObject>(
    projection: Projection<D>,
    query: Query,
  ): Promise<readonly ViewDocument<D>[]>;

  count<D extends JsonObject>(
    projection: Projection<D>,
    filters: readonly Filter[],
  ): Promise<number>;

  /**
   * Reads queried fields of all documents that match, without the documents: to order tens of thousands of them by more
   * than one view.
   *
   * @throws ReadModelError `NO_VIEW`, `UNAVAILABLE`; TypeError for a field that is not queried, or a list
   */
  values(projection: Projection, query: ValuesQuery): Promise<readonly FieldValues[]>;

  /**
   * Reads a page of a list with its total and its position from one snapshot of the live generation.
   *
   * @throws ReadModelError `NO_VIEW`, `UNAVAILABLE`
   */
  list(projection: Projection, query: ListQuery): Promise<Listed>;

  /** The position up to which the live generation has folded everything; `BEGINNING` for nothing. */
  checkpoint(projection: Projection): Promise<Position>;

  /**
   * The last event of the log at or before the live generation's checkpoint. It identifies the log that the generation
   * was built from. null if an older release wrote the generation.
   */
  landmark(projection: Projection): Promise<Landmark | null>;

  /**
   * A version that stays the same as long as no readable document has changed. Cheaper than reading a document. An
   * adapter may leave it out.
   *
   * @throws ReadModelError `NO_VIEW`, `UNAVAILABLE`
   */
  version?(projection: Projection): string;

  openWriter(projection: Projection, options: WriterOptions): Promise<ViewWriter>;

  /** The generation that reads use; null before the first switch. Stored per (name, schema). */
  liveGeneration(projection: Projection): Promise<number | null>;

  /** Moves reads to a generation: at once here, within a second in every process. */
  switchTo(projection: Projection, generation: number): Promise<void>;

  /** Leaves reads without a generation, within a second in every process, until the next switch. */
  withdraw(projection: Projection): Promise<void>;

  /** The schema numbers that have a generation, ascending. They may differ from the projection's own number. */
  schemas(projection: Projection): Promise<readonly number[]>;

  generations(projection: Projection): Promise<readonly number[]>;

  /** Deletes a generation that is not live. */
  discard(projection: Projection, generation: number): Promise<void>;

  /** Resolves if the read model answers within two seconds; throws `UNAVAILABLE` otherwise. */
  ping(): Promise<void>;

  /**
   * Resolves if the server's user has the rights that views and coordination need, as far as the server says. Changes
   * nothing. Embedded views leave it out.
   *
   * @throws ReadModelError `UNAVAILABLE`
   */
  requireRights?(): Promise<void>;

  close(): Promise<void>;
}

export interface WriterOptions {
  readonly generation: number;
  /**
   * For filling a generation that nobody reads yet: creates no indexes and does not wait for the disk until `finish()`.
   */
  readonly bulk: boolean;
  /**
   * The share of one of several writers that fill a generation in parallel: in bulk, of a projection with {@link
   * Projection.ownStreams}. Share 0 writes the generation itself and merges the others. An adapter may refuse. Default:
   * the whole.
   */
  readonly share?: StreamShare | undefined;
  /** The fence of the writer's lease. A write is refused if a larger fence was seen before. */
  readonly fence: number;
}

/** The projector's side of one generation. One writer at a time, or one per share; two at once do no harm. */
export interface ViewWriter {
  /** The share that is written; null: the whole generation, also after share 0 has merged the others. */
  readonly share?: StreamShare | null;

  /**
   * Merges the shares of all other writers, which are closed at the same checkpoint, into share 0, which then writes
   * the whole generation. All or nothing.
   *
   * @throws ReadModelError `UNAVAILABLE` if a share is missing or at another checkpoint; `FENCED`
   */
  mergeShares?(): Promise<void>;

  /** The position up to which this generation has folded everything. */
  checkpoint(): Promise<Position>;

  /** The existing documents of these keys; deleted ones as a tombstone (document null). */
  load(
    keys: readonly string[],
  ): Promise<
    ReadonlyMap<string, { readonly position: Position; readonly document: JsonObject | null }>
  >;

  /**
   * Writes documents (null deletes), then the checkpoint. A document stored at the same or a later position stays, so a
   * repeated batch changes nothing. In bulk mode, `write` may resolve while it is still writing. `load` knows these
   * documents; any other call waits until they are written, and throws the error of that write.
   *
   * @throws ReadModelError `FENCED` if a writer with a larger fence has written the checkpoint, or the checkpoint is no
   *   longer `from`: reopen and continue from it
   */
  write(batch: {
    readonly documents: readonly {
      readonly key: string;
      readonly position: Position;
      readonly document: JsonObject | null;
      /** This key has no document yet, so none is looked up. Only in bulk. Default: false. */
      readonly isFirst?: boolean;
    }[];
    readonly from: Position;
    readonly to: Position;
    /** The last event of any stream at or before `to`; default: unchanged. */
    readonly landmark?: Landmark | undefined;
  }): Promise<void>;

  /** The documents after a key (null: from the first), ordered by key. Used to compare generations. */
  page(after: string | null, limit: number): Promise<readonly ViewDocument[]>;

  count(): Promise<number>;

  /** Ends bulk filling: creates the indexes, then syncs. Does nothing if the writer is not in bulk mode. */
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
