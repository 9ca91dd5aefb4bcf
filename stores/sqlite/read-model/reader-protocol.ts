import type { Cut, Listed } from '../../../projections/read-model.ts';
import type { DatabaseFault } from '../database.ts';
import type { CompiledQuery } from './query-sql.ts';

/** What goes between the reading threads and the thread that asks. */

/** What a reading thread begins with. */
export interface ReaderSettings {
  /** Whether no file may be made beside those that are read; see `DatabaseOptions`. */
  readonly immutable: boolean;
}

export interface ReadRequest {
  /** Comes back with the reply. */
  readonly id: number;
  /** Which opening of which file, so that a file made anew under the same name is opened anew. */
  readonly view: number;
  readonly file: string;
  readonly query: CompiledQuery;
  /** How many rows; undefined for a query that counts. */
  readonly limit: number | undefined;
  /** What belongs to a page of a list besides its rows; undefined for any other query. */
  readonly list?: ListRequest | undefined;
}

/** What is read in the same transaction as the rows of a page, and what bounds these. */
export interface ListRequest {
  /** null where nothing is counted. */
  readonly counted: CompiledQuery | null;
  readonly mostBytes: number;
  readonly cut: Cut | undefined;
}

export type ToReader =
  | { readonly kind: 'read'; readonly requests: readonly ReadRequest[] }
  /** Close the connection of a view that is not read any more. */
  | { readonly kind: 'forget'; readonly view: number }
  | { readonly kind: 'end' };

export type ReadReply = { readonly id: number } & (
  | {
      readonly kind: 'rows';
      /** Key, position and text of each document, one after the other. */
      readonly texts: readonly string[];
    }
  | { readonly kind: 'count'; readonly count: number }
  | {
      readonly kind: 'list';
      readonly listed: Listed;
    }
  | {
      readonly kind: 'failed';
      readonly fault: DatabaseFault | undefined;
      readonly message: string;
    }
);

/** What a thread answers at once. The first is empty: the thread has started. */
export type FromReader = readonly ReadReply[];
