import type { JsonObject } from '../../../domain/json.ts';
import type { Cell } from './view-table.ts';

/** A row as it is in the file. */
export interface KnownRow {
  readonly id: number;
  readonly position: string;
  /** In the order of the columns. */
  readonly cells: readonly Cell[];
  readonly document: JsonObject;
  /** Length of the document's JSON. */
  readonly size: number;
}

/** Characters of documents kept in memory. */
const MAX_CHARACTERS = 4 * 1024 * 1024;

/** The same during a bulk fill, which rarely returns to old documents; more would cost a tenth of a rebuild. */
export const MAX_CHARACTERS_WHEN_FILLING = 1024 * 1024;

/** A larger document is not kept. */
const MAX_DOCUMENT_CHARACTERS = 64 * 1024;

/**
 * The rows written or read last. Most events change a document that was just written (a run is requested, starts, ends),
 * so most batches need no lookup. Valid only while nobody else writes.
 *
 * Two Maps, of which the older is dropped as a whole: cheaper than deleting rows one by one.
 */
export class RecentRows {
  #young = new Map<string, KnownRow>();
  #old = new Map<string, KnownRow>();
  /** Characters of the young documents. */
  #text = 0;
  readonly #mostYoung: number;

  /** @param most characters of documents to keep; at least half of them are kept. Default: 4 Mi */
  constructor(most = MAX_CHARACTERS) {
    this.#mostYoung = most / 2;
  }

  get(key: string): KnownRow | undefined {
    return this.#young.get(key) ?? this.#old.get(key);
  }

  set(key: string, row: KnownRow): void {
    if (row.size > MAX_DOCUMENT_CHARACTERS) {
      this.delete(key);
      return;
    }
    this.#text += row.size - (this.#young.get(key)?.size ?? 0);
    this.#young.set(key, row);
  }

  /** Drops the older half when the younger one is full. Called once per batch, outside the hot path. */
  age(): void {
    if (this.#text <= this.#mostYoung) return;
    this.#old = this.#young;
    this.#young = new Map();
    this.#text = 0;
  }

  delete(key: string): void {
    this.#text -= this.#young.get(key)?.size ?? 0;
    this.#young.delete(key);
    this.#old.delete(key);
  }

  forget(): void {
    this.#young = new Map();
    this.#old = new Map();
    this.#text = 0;
  }
}
