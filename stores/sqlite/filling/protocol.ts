import type { Position } from '../../../domain/event-store.ts';
import type { KeptRow, KnownRow, RowShape } from '../read-model/view-rows.ts';
import type { Column } from '../read-model/view-table.ts';
import type { CarriedError } from './carried-error.ts';
import type { PackedBatch } from './packed-batch.ts';

/** What goes between the writer of a generation that is being filled and the thread that has its file. */

/** Which generation, as which writer. */
export interface FillOrder {
  readonly shape: RowShape;
  readonly columns: readonly Column[];
  readonly file: string;
  /** Which file it has to be; see `fileNumber`. */
  readonly fileNumber: number | undefined;
  readonly fence: number;
}

/** One after the other, in the order in which they are asked for. */
export type FillCall =
  /** Opens the file, with what its writer before remembers of it. */
  | { readonly kind: 'begin'; readonly remembered: readonly (readonly [string, KnownRow])[] }
  | { readonly kind: 'write'; readonly batch: PackedBatch }
  | { readonly kind: 'checkpoint' }
  | { readonly kind: 'load'; readonly keys: readonly string[] }
  | { readonly kind: 'page'; readonly after: string | null; readonly limit: number }
  | { readonly kind: 'count' }
  | { readonly kind: 'finish' }
  /** Afterwards the thread ends. */
  | { readonly kind: 'close' };

/** What each call comes to. After a write that has failed, all that follow but `close` fail as it did. */
export interface FillResults {
  /** The checkpoint. */
  readonly begin: Position;
  readonly write: undefined;
  readonly checkpoint: Position;
  readonly load: readonly KeptRow[];
  readonly page: readonly KeptRow[];
  readonly count: number;
  readonly finish: undefined;
  readonly close: undefined;
}

export type FillResult = FillResults[keyof FillResults];

/** `ready`: it may be told to begin. The others answer one call each, in their order. */
export type FromFilling =
  | { readonly kind: 'ready' }
  | { readonly kind: 'done'; readonly result: FillResult }
  | { readonly kind: 'failed'; readonly error: CarriedError };
