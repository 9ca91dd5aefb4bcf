import type { JsonObject } from '../../../domain/json.ts';
import type { Cell } from './view-table.ts';

/** A row as it stands in the file. */
export interface KnownRow {
  readonly id: number;
  readonly position: string;
  /** In the order of the columns. */
  readonly cells: readonly Cell[];
  readonly document: JsonObject;
  /** Length of the document's text. */
  readonly size: number;
}

/** How much text of documents is kept in memory, in characters. */
const MOST_TEXT = 4 * 1024 * 1024;

/**
 * The same while a generation is filled: events come in the log's order there, so that few old documents are asked for,
 * and what lives long is what the garbage collector has to copy (a tenth of a rebuild).
 */
export const MOST_TEXT_WHEN_FILLING = 1024 * 1024;

/**
 * What is left when that is too much, of it. Many are dropped at once: a Map finds its first entry by passing over all
 * that were deleted before it, which would cost each row more than it saves.
 */
const SHARE_LEFT = 0.75;

/** A larger document is not kept. */
const LARGEST = 64 * 1024;

/**
 * The rows that were written or read last. What is written is mostly what was written a moment ago (a run is
 * requested, starts, ends), so most batches need not look anything up. Good only as long as nobody else writes:
 * the writer forgets it all when its turn is not its own.
 */
export class RecentRows {
  private readonly rows = new Map<string, KnownRow>();
  private text = 0;
  private readonly most: number;

  /** @param most characters of documents that are kept; default 4 Mi */
  constructor(most = MOST_TEXT) {
    this.most = most;
  }

  get(key: string): KnownRow | undefined {
    return this.rows.get(key);
  }

  set(key: string, row: KnownRow): void {
    this.delete(key);
    if (row.size > LARGEST) return;
    this.rows.set(key, row);
    this.text += row.size;
    if (this.text <= this.most) return;
    for (const [oldest, { size }] of this.rows) {
      this.rows.delete(oldest);
      this.text -= size;
      if (this.text <= this.most * SHARE_LEFT) break;
    }
  }

  delete(key: string): void {
    const known = this.rows.get(key);
    if (known === undefined) return;
    this.rows.delete(key);
    this.text -= known.size;
  }

  forget(): void {
    this.rows.clear();
    this.text = 0;
  }
}
