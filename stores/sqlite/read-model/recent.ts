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

/** What belongs to a larger document is not kept. */
const LARGEST = 64 * 1024;

/** What is remembered of a document. */
export interface Remembered {
  /** Of the last event that it has taken. */
  readonly position: string;
  /** Length of its text. */
  readonly size: number;
}

/**
 * What is known of the documents that were written or read last. What is written is mostly what was written a moment
 * ago (a run is requested, starts, ends), so most batches need not look anything up. Good only as long as nobody else
 * writes: the writer forgets it all when its turn is not its own.
 */
export class Recent<T extends Remembered> {
  private readonly entries = new Map<string, T>();
  private text = 0;
  private readonly most: number;

  /** @param most characters of documents for which it remembers something; default 4 Mi */
  constructor(most = MOST_TEXT) {
    this.most = most;
  }

  get(key: string): T | undefined {
    return this.entries.get(key);
  }

  set(key: string, entry: T): void {
    this.delete(key);
    if (entry.size > LARGEST) return;
    this.entries.set(key, entry);
    this.text += entry.size;
    if (this.text <= this.most) return;
    for (const [oldest, { size }] of this.entries) {
      this.entries.delete(oldest);
      this.text -= size;
      if (this.text <= this.most * SHARE_LEFT) break;
    }
  }

  delete(key: string): void {
    const known = this.entries.get(key);
    if (known === undefined) return;
    this.entries.delete(key);
    this.text -= known.size;
  }

  forget(): void {
    this.entries.clear();
    this.text = 0;
  }

  /** All of it, by key, the oldest first. */
  all(): readonly (readonly [string, T])[] {
    return [...this.entries];
  }
}
