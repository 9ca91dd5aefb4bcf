/**
 * Rows of the log as one text: what crosses from SQLite, or to another thread, costs by the piece, and each row has
 * eight. The text is JSON, so that data and metadata of all of them are parsed by one call.
 */
export interface PackedRows {
  /** They lie behind this position. */
  readonly after: number;
  /** Position of the last one. */
  readonly upTo: number;
  readonly count: number;
  /** An array with a {@link ParsedRow} of each, in their order; JSON only where data and metadata of all of them are. */
  readonly text: string;
}

/** A part of the log. */
export interface PackedPage {
  readonly parts: readonly PackedRows[];
  /** Everything up to here is in the parts, or was left out. */
  readonly upTo: number;
  /** Nothing lay behind it when it was read. */
  readonly isLast: boolean;
}

/** A row of `events` with its stream's name, as SQL for the text of a {@link ParsedRow}. */
export const PACKED = `concat(
  '[', events.position, ',', json_quote(streams.name), ',', events.revision, ',', json_quote(events.id), ',',
  events.type, ',', events.created_at, ',', events.data, ',', events.metadata, ']')`;

/** The type by its number, the time in milliseconds. */
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

/** The rows; null where the text says something else, as one of them is broken: then each has to be read by itself. */
export function unpackRows({ after, upTo, count, text }: PackedRows): readonly ParsedRow[] | null {
  let rows: readonly ParsedRow[];
  try {
    rows = JSON.parse(text) as readonly ParsedRow[];
  } catch {
    return null;
  }
  // What is broken may be JSON together with what stands around it. SQLite does not promise the order of what it joins.
  let last = after;
  for (const row of rows) {
    if (!Array.isArray(row) || row.length !== WIDTH || !(row[0] > last)) return null;
    last = row[0];
  }
  return rows.length === count && last === upTo ? rows : null;
}
