import type { RowBatch, RowChange } from '../read-model/view-rows.ts';
import type { Cell, Column } from '../read-model/view-table.ts';

/**
 * A batch of rows on its way from one thread to another, as few texts and one list of numbers: what crosses costs by the
 * piece, and each row has half a dozen texts and more.
 */
export interface PackedBatch {
  readonly from: string;
  readonly to: string;
  readonly rows: number;
  /**
   * Key, position and cells of each row, all one after the other; those of {@link ROWS_A_TEXT} rows together. By
   * themselves, as they are what is remembered: a part of a text keeps all of it in memory.
   */
  readonly names: readonly string[];
  /** The same for the documents. */
  readonly documents: readonly string[];
  /**
   * Of each row: the lengths of its key and its position, that of its document or -1 where it deletes, 1 where it is the
   * first of its key; then of each cell its length, or the number itself; NaN for null.
   */
  readonly numbers: Float64Array;
}

const HEAD = 4;

/** Larger texts would lie outside of the part of the heap where short-lived things cost nothing. */
const ROWS_A_TEXT = 64;

/** For the way; the numbers' memory may go over as it is. */
export function packBatch({ rows, from, to }: RowBatch, columns: readonly Column[]): PackedBatch {
  const width = HEAD + columns.length;
  const numbers = new Float64Array(rows.length * width);
  const names: string[] = [];
  const documents: string[] = [];
  for (let first = 0; first < rows.length; first += ROWS_A_TEXT) {
    const ofNames: string[] = [];
    const ofDocuments: string[] = [];
    const end = Math.min(rows.length, first + ROWS_A_TEXT);
    for (let i = first; i < end; i += 1) {
      const row = rows[i];
      if (row !== undefined) packRow(row, numbers, i * width, ofNames, ofDocuments);
    }
    names.push(ofNames.join(''));
    documents.push(ofDocuments.join(''));
  }
  return { from, to, rows: rows.length, names, documents, numbers };
}

function packRow(
  { key, position, text, cells, isFirst }: RowChange,
  numbers: Float64Array,
  at: number,
  names: string[],
  documents: string[],
): void {
  numbers[at] = key.length;
  numbers[at + 1] = position.length;
  numbers[at + 2] = text?.length ?? -1;
  numbers[at + 3] = isFirst ? 1 : 0;
  names.push(key, position);
  if (text === null) return;
  documents.push(text);
  for (let i = 0; i < cells.length; i += 1) {
    const cell = cells[i] ?? null;
    if (typeof cell === 'string') {
      numbers[at + HEAD + i] = cell.length;
      names.push(cell);
    } else {
      // No cell is NaN: JSON has no such number.
      numbers[at + HEAD + i] = cell ?? NaN;
    }
  }
}

/** The batch as it was. */
export function unpackBatch(batch: PackedBatch, columns: readonly Column[]): RowBatch {
  const { from, to, names, documents, numbers } = batch;
  const width = HEAD + columns.length;
  const isText = columns.map(({ kind }) => kind === 'text' || kind === 'text-list');
  const rows: RowChange[] = [];
  for (let first = 0; first < batch.rows; first += ROWS_A_TEXT) {
    const name = inPieces(names[first / ROWS_A_TEXT] ?? '');
    const document = inPieces(documents[first / ROWS_A_TEXT] ?? '');
    const end = Math.min(batch.rows, first + ROWS_A_TEXT);
    for (let i = first; i < end; i += 1) {
      const at = i * width;
      const key = name(numbers[at] ?? 0);
      const position = name(numbers[at + 1] ?? 0);
      const length = numbers[at + 2] ?? -1;
      const isFirst = numbers[at + 3] === 1;
      if (length < 0) {
        rows.push({ key, position, text: null, cells: [], isFirst });
        continue;
      }
      const cells: Cell[] = [];
      for (let c = 0; c < isText.length; c += 1) {
        const number = numbers[at + HEAD + c] ?? NaN;
        if (Number.isNaN(number)) cells.push(null);
        else cells.push(isText[c] === true ? name(number) : number);
      }
      rows.push({ key, position, text: document(length), cells, isFirst });
    }
  }
  return { rows, from, to };
}

/** Takes a text apart, from its beginning. */
function inPieces(text: string): (length: number) => string {
  let from = 0;
  return (length) => text.slice(from, (from += length));
}
