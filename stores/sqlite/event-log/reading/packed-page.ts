/**
 * Rows of the log as one JSON string. Crossing from SQLite or between threads costs per value, and a row has eight. One
 * call then parses the data and metadata of all rows.
 */
export interface PackedRows {
  /** All rows are after this position. */
  readonly after: number;
  /** Position of the last row. */
  readonly upTo: number;
  readonly count: number;
  /** An array of {@link ParsedRow}s in order. The text is not JSON if the data or metadata of a row is not. */
  readonly text: string;
}

/** A part of the log. */
export interface PackedPage {
  readonly parts: readonly PackedRows[];
  /** Everything up to here is in the parts, or was filtered out. */
  readonly upTo: number;
  /** Whether the log ended there when it was read. */
  readonly isLast: boolean;
}

/** SQL that turns a row of `events` with its stream's name into a {@link ParsedRow}. */
export const PACKED = `concat(
  '[', events.position, ',', json_quote(streams.name), ',', events.revision, ',', json_quote(events.id), ',',
  events.type, ',', events.created_at, ',', events.data, ',', events.metadata, ']')`;

/** Type as a number, time in milliseconds. */
export type ParsedRow = readonly [
  position: number,
  stream: string,
  revision: number,
  id: string,
  type: number,
  createdAt: number,
  data: unknown,
  metadata: unknown,
];

const WIDTH = 8;

/** The rows; null if one of them is broken, so that each must be read separately. */
export function unpackRows({ after, upTo, count, text }: PackedRows): readonly ParsedRow[] | null {
  let rows: readonly ParsedRow[];
  try {
    rows = JSON.parse(text) as readonly ParsedRow[];
  } catch {
    return null;
  }
  // Broken JSON may be valid together with its surroundings. SQLite does not guarantee the order of `group_concat`.
  let last = after;
  for (const row of rows) {
    if (!Array.isArray(row) || row.length !== WIDTH || !(row[0] > last)) return null;
    last = row[0];
  }
  return rows.length === count && last === upTo ? rows : null;
}
