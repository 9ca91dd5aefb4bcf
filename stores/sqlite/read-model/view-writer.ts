import type { Position } from '../../../domain/event-store.ts';
import type { JsonObject } from '../../../domain/json.ts';
import {
  ReadModelError,
  type KeptDocument,
  type ViewWriter,
} from '../../../projections/read-model.ts';
import { MOST_TEXT_WHEN_FILLING, Recent, type Remembered } from './recent.ts';
import type { KeptRow, RowChange, ViewRows } from './view-rows.ts';
import { cellOf, type Cell, type Column } from './view-table.ts';

/** What a writer is made with. */
export interface WriterSetup {
  readonly columns: readonly Column[];
  readonly rows: ViewRows;
  /** Filling a generation that nobody reads yet. */
  readonly bulk: boolean;
  /** Makes the port's error of what the driver threw, and throws away a damaged file. */
  readonly errorOf: (error: unknown) => unknown;
  /** Called once it is closed. */
  readonly closed: (writer: ViewWriter) => void;
}

/**
 * While a generation is filled, as text: few of the documents are asked for again, and what lives long is what the garbage
 * collector has to copy, of a text in one piece and of a document in a hundred.
 */
interface KnownDocument extends Remembered {
  readonly document: JsonObject | string;
}

type Batch = Parameters<ViewWriter['write']>[0];
type Change = Batch['documents'][number];

/** Writes one generation: makes rows of documents, and remembers the documents that are asked for most likely. */
export class SqliteViewWriter implements ViewWriter {
  readonly #setup: WriterSetup;
  #recent: Recent<KnownDocument>;
  /** Keys that were looked for since the last writing, and not found. */
  #absent = new Set<string>();
  /** Grows with each change: what was read before it is not to be remembered after it. */
  #changes = 0;
  #closing: Promise<void> | undefined;

  constructor(setup: WriterSetup) {
    this.#setup = setup;
    this.#recent = new Recent<KnownDocument>(setup.bulk ? MOST_TEXT_WHEN_FILLING : undefined);
  }

  async checkpoint(): Promise<Position> {
    // Whoever asks anew goes on from what it is, whoever wrote it.
    this.#forget();
    return this.#onRows((rows) => rows.checkpoint());
  }

  async load(
    keys: readonly string[],
  ): Promise<
    ReadonlyMap<string, { readonly position: Position; readonly document: JsonObject | null }>
  > {
    const found = new Map<string, { position: Position; document: JsonObject | null }>();
    const missing: string[] = [];
    for (const key of keys) {
      const known = this.#recent.get(key);
      if (known === undefined) missing.push(key);
      else found.set(key, { position: known.position, document: asDocument(known.document) });
    }
    if (missing.length === 0) return found;
    const changes = this.#changes;
    const kept = await this.#onRows((rows) => rows.load(missing));
    const absent = new Set(missing);
    for (const row of kept) {
      const { key, position, text } = row;
      const document = asDocument(text);
      found.set(key, { position, document });
      absent.delete(key);
      if (changes === this.#changes) this.#keep(key, position, document, text);
    }
    if (changes === this.#changes) this.#absent = absent;
    return found;
  }

  async write({ documents, from, to }: Batch): Promise<void> {
    const rows = documents.map((change) => this.#rowOf(change));
    this.#changes += 1;
    try {
      await this.#onRows((into) => into.write({ rows, from, to }));
    } catch (error) {
      this.#forget();
      throw error;
    }
    for (const [place, change] of documents.entries()) {
      this.#remember(change, rows[place]?.text ?? null);
    }
    this.#absent.clear();
  }

  async page(after: string | null, limit: number): Promise<readonly KeptDocument[]> {
    const kept = await this.#onRows((rows) => rows.page(after, limit));
    return kept.map(documentOf);
  }

  async count(): Promise<number> {
    return this.#onRows((rows) => rows.count());
  }

  async finish(): Promise<void> {
    if (!this.#setup.bulk) return;
    await this.#onRows((rows) => rows.finish());
  }

  close(): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  async #close(): Promise<void> {
    try {
      await this.#setup.rows.close();
    } catch (error) {
      throw this.#setup.errorOf(error);
    } finally {
      this.#setup.closed(this);
    }
  }

  #rowOf({ key, position, document, isFirst = false }: Change): RowChange {
    if (document === null) return { key, position, text: null, cells: [], isFirst };
    const cells: Cell[] = [];
    for (const column of this.#setup.columns) cells.push(cellOf(column, document));
    return { key, position, text: JSON.stringify(document), cells, isFirst };
  }

  /** A document that is kept at the same or a later position has stayed as it is, and one not known may have. */
  #remember({ key, position, document, isFirst = false }: Change, text: string | null): void {
    const known = this.#recent.get(key);
    if (known === undefined ? !isFirst && !this.#absent.has(key) : known.position >= position) {
      return;
    }
    if (document === null || text === null) this.#recent.delete(key);
    else this.#keep(key, position, document, text);
  }

  #keep(key: string, position: Position, document: JsonObject, text: string): void {
    const kept = this.#setup.bulk ? text : document;
    this.#recent.set(key, { position, document: kept, size: text.length });
  }

  #forget(): void {
    this.#changes += 1;
    this.#recent.forget();
    this.#absent.clear();
  }

  async #onRows<T>(action: (rows: ViewRows) => T | Promise<T>): Promise<T> {
    if (this.#closing !== undefined) {
      throw new ReadModelError('UNAVAILABLE', 'the writer of this view is closed');
    }
    try {
      return await action(this.#setup.rows);
    } catch (error) {
      throw this.#setup.errorOf(error);
    }
  }
}

function documentOf({ key, position, text }: KeptRow): KeptDocument {
  return { key, position, document: asDocument(text) };
}

function asDocument(kept: JsonObject | string): JsonObject {
  return typeof kept === 'string' ? (JSON.parse(kept) as JsonObject) : kept;
}
