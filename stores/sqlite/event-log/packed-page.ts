import type { LogRow, RowPage } from './log-rows.ts';

/**
 * A page of rows on its way from one thread to another, as few texts and one list of numbers: what crosses costs by the
 * piece, and each row has four texts.
 */
export interface PackedPage {
  /** Of each row; by themselves, as they are what lives on in who folds: a part of a text keeps all of it in memory. */
  readonly names: readonly string[];
  /** Id, data and metadata of each row, all one after the other; those of {@link ROWS_A_TEXT} rows together. */
  readonly texts: readonly string[];
  /** Of each row {@link WIDTH} numbers: position, revision, type, time, and the lengths of id, data and metadata. */
  readonly numbers: Float64Array;
  /** As in {@link RowPage}. */
  readonly upTo: number;
}

const WIDTH = 7;

/** Larger texts would lie outside of the part of the heap where short-lived things cost nothing. */
const ROWS_A_TEXT = 64;

/** For the way; the numbers' memory may go over as it is. */
export function packRows({ rows, upTo }: RowPage): PackedPage {
  const numbers = new Float64Array(rows.length * WIDTH);
  const names: string[] = [];
  const texts: string[] = [];
  let parts: string[] = [];
  let at = 0;
  for (const [position, name, revision, id, type, createdAt, data, metadata] of rows) {
    numbers[at] = position;
    numbers[at + 1] = revision;
    numbers[at + 2] = type;
    numbers[at + 3] = createdAt;
    numbers[at + 4] = id.length;
    numbers[at + 5] = data.length;
    numbers[at + 6] = metadata.length;
    at += WIDTH;
    names.push(name);
    parts.push(id, data, metadata);
    if (names.length % ROWS_A_TEXT !== 0) continue;
    texts.push(parts.join(''));
    parts = [];
  }
  if (parts.length > 0) texts.push(parts.join(''));
  return { names, texts, numbers, upTo };
}

/** The rows as they were. */
export function unpackRows({ names, texts, numbers }: PackedPage): readonly LogRow[] {
  const rows: LogRow[] = [];
  let text = '';
  let from = 0;
  let place = 0;
  const next = (length: number): string => text.slice(from, (from += length));
  const at = (offset: number): number => numbers[place + offset] ?? 0;
  for (const name of names) {
    if (rows.length % ROWS_A_TEXT === 0) {
      text = texts[rows.length / ROWS_A_TEXT] ?? '';
      from = 0;
    }
    const id = next(at(4));
    const data = next(at(5));
    const metadata = next(at(6));
    rows.push([at(0), name, at(1), id, at(2), at(3), data, metadata]);
    place += WIDTH;
  }
  return rows;
}
