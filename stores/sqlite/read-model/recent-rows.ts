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

/** A larger document is not kept. */
const LARGEST = 64 * 1024;

/**
 * The rows that were written or read last. What is written is mostly what was written a moment ago (a run is
 * requested, starts, ends), so most batches need not look anything up. Good only as long as nobody else writes:
 * the writer forgets it all when its turn is not its own.
 *
 * They stand in two Maps, of which the older is dropped as a whole: see `TransientMap` for what one Map would keep alive.
 */
export class RecentRows {
  private young = new Map<string, KnownRow>();
  private old = new Map<string, KnownRow>();
  /** Characters of the young ones' documents. */
  private text = 0;
  private readonly mostYoung: number;

  /** @param most characters of documents that are kept, and half of them at least; default 4 Mi */
  constructor(most = MOST_TEXT) {
    this.mostYoung = most / 2;
  }

  get(key: string): KnownRow | undefined {
    return this.young.get(key) ?? this.old.get(key);
  }

  set(key: string, row: KnownRow): void {
    if (row.size > LARGEST) {
      this.delete(key);
      return;
    }
    this.text += row.size - (this.young.get(key)?.size ?? 0);
    this.young.set(key, row);
  }

  /**
   * Lets go of the older half when the younger one is full. After each batch: what is done now and then amid what is
   * done for each document has V8 compile all of that anew.
   */
  age(): void {
    if (this.text <= this.mostYoung) return;
    this.old = this.young;
    this.young = new Map();
    this.text = 0;
  }

  delete(key: string): void {
    this.text -= this.young.get(key)?.size ?? 0;
    this.young.delete(key);
    this.old.delete(key);
  }

  forget(): void {
    this.young = new Map();
    this.old = new Map();
    this.text = 0;
  }
}
