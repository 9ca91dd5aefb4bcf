import type { Position } from '../../../domain/event-store.ts';
import type { Projection } from '../../../projections/read-model.ts';
import type { Remembered } from './recent.ts';
import type { Cell } from './view-table.ts';

/** What of a projection says how its rows lie in the file: all but its functions, so that it can go to another thread. */
export type RowShape = Pick<
  Projection,
  'name' | 'schema' | 'fields' | 'indexes' | 'covered' | 'sparse' | 'tallies'
>;

export function shapeOf(projection: Projection): RowShape {
  const { name, schema, fields, indexes, covered, sparse, tallies } = projection;
  return {
    ...{ name, schema, fields, indexes },
    ...(covered === undefined ? {} : { covered }),
    ...(sparse === undefined ? {} : { sparse }),
    ...(tallies === undefined ? {} : { tallies }),
  };
}

/** A document as it is kept. */
export interface KeptRow {
  readonly key: string;
  readonly position: Position;
  /** JSON. */
  readonly text: string;
}

/** A document as it is to be written. */
export interface RowChange {
  readonly key: string;
  readonly position: Position;
  /** JSON; null deletes. */
  readonly text: string | null;
  /** What stands in the columns, in their order; none where it deletes. */
  readonly cells: readonly Cell[];
  /** There is surely no row of this key. */
  readonly isFirst: boolean;
}

/** What counts whole or not at all. */
export interface RowBatch {
  readonly rows: readonly RowChange[];
  /** Where the checkpoint was. */
  readonly from: Position;
  /** Where it is after this batch. */
  readonly to: Position;
}

/** A row as it stands in the file, without its document. */
export interface KnownRow extends Remembered {
  readonly id: number;
  /** In the order of the columns. */
  readonly cells: readonly Cell[];
}

/**
 * Where a writer's rows go: what the port's writer promises, by rows instead of documents. Here, or in a thread: both
 * are waited for. Throws as the driver does, besides `ReadModelError`.
 */
export interface ViewRows {
  /** Forgets what is remembered of the rows: somebody else may have written. */
  checkpoint(): Position | Promise<Position>;
  /** The rows of these keys, as far as there are any. */
  load(keys: readonly string[]): readonly KeptRow[] | Promise<readonly KeptRow[]>;
  /**
   * While a generation is filled, this may be over before the rows are in the file: what goes wrong with them comes out
   * with a later call, and from then on with each.
   */
  write(batch: RowBatch): void | Promise<void>;
  /** The rows after a key, by key. */
  page(after: string | null, limit: number): readonly KeptRow[] | Promise<readonly KeptRow[]>;
  count(): number | Promise<number>;
  finish(): void | Promise<void>;
  /** What is written stays written; once. */
  close(): void | Promise<void>;
}
