import type { Cut, Listed } from '../../../projections/read-model.ts';
import type { DatabaseFault } from '../database.ts';
import type { CompiledQuery } from './query-sql.ts';

/** Messages between the reader threads and the thread that asks. */

export interface ReaderSettings {
  /** Whether no file may be created beside the views; see `DatabaseOptions`. */
  readonly immutable: boolean;
}

export interface ReadRequest {
  /** Returned with the reply. */
  readonly id: number;
  /** Identifies an opening of a file, so that a recreated file is opened anew. */
  readonly view: number;
  readonly file: string;
  readonly query: CompiledQuery;
  /** Number of rows; undefined for a count. */
  readonly limit: number | undefined;
  /** Further needs of a list page; undefined for any other query. */
  readonly list?: ListRequest | undefined;
}

/** The further reads of a list page in the same transaction, and its bounds. */
export interface ListRequest {
  /** null if nothing is counted. */
  readonly counted: CompiledQuery | null;
  readonly mostBytes: number;
  readonly cut: Cut | undefined;
}

export type ToReader =
  | { readonly kind: 'read'; readonly requests: readonly ReadRequest[] }
  /** Close the connection to a view. */
  | { readonly kind: 'forget'; readonly view: number }
  | { readonly kind: 'end' };

export type ReadReply = { readonly id: number } & (
  | {
      readonly kind: 'rows';
      /** Key, position and JSON of each document in turn. */
      readonly texts: readonly string[];
    }
  | { readonly kind: 'count'; readonly count: number }
  | { readonly kind: 'list'; readonly listed: Listed }
  | {
      readonly kind: 'failed';
      readonly fault: DatabaseFault | undefined;
      readonly message: string;
    }
);

/** Replies sent together. The first message is empty: the thread has started. */
export type FromReader = readonly ReadReply[];
