export const exportFormats = ['ndjson', 'csv'] as const;
export type ExportFormat = (typeof exportFormats)[number];

/** A part of an export, and how far its source has been read. */
export interface ExportedPart {
  readonly text: string;
  /** Rows in the text, without the header. */
  readonly count: number;
  /** The progress, from 0 to 1; 0 if unknown. */
  readonly share: number;
  /** The number of rows read for this part, including those that were filtered out. */
  readonly read: number;
}

/** Characters of a part: with one more row, this is what memory holds. */
export const PART_CHARACTERS = 64 * 1024;
