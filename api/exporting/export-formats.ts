/** What rows can be written as. */
export const exportFormats = ['ndjson', 'csv'] as const;
export type ExportFormat = (typeof exportFormats)[number];

/** A part of what is written, and how far its source has been read. */
export interface ExportedPart {
  readonly text: string;
  /** Rows in the text, without a head. */
  readonly count: number;
  /** 0 to 1; 0 where nobody knows. */
  readonly share: number;
  /** What was read for this part, wanted or not. */
  readonly read: number;
}

/** Characters after which a part is given out: so much, and one row more, is in memory at a time. */
export const PART = 64 * 1024;
