import type { ClientSession, Collection, Db } from 'mongodb';
import type { Position } from '../../domain/event-store.ts';
import { ReadModelError } from '../../projections/read-model.ts';
import type { StoredDocument } from './layout.ts';

/**
 * Documents that exceed MongoDB's 16 MiB, such as a run with many large steps. The JSON is split into parts beside the
 * generation; the row holds their number. Parts are written before their row and never changed, so a crash leaves at
 * most unreferenced parts.
 */
interface StoredPart {
  readonly _id: string;
  readonly text: string;
}

/** The longest JSON kept in the row itself, in bytes of UTF-8. */
const MAX_ROW_BYTES = 8 * 1024 * 1024;

/** Length of a part in UTF-16 units, each at most three bytes. */
const MAX_PART_LENGTH = 4 * 1024 * 1024;

/** How often a row is read again whose parts have been replaced. */
const MAX_ATTEMPTS = 5;

/** Separates key, position and number, and occurs in none of them. */
const SEPARATOR = '\u0001';

type Row = Pick<StoredDocument, '_id' | '_pos' | 'd' | 'parts'>;

/** The collection of a generation's parts. */
export function partsCollectionOf(collection: string): string {
  return `${collection}_parts`;
}

/** The parts of a string that is too large for a row; else null. Surrogate pairs stay together. */
export function splitIntoParts(text: string): readonly string[] | null {
  if (text.length * 3 <= MAX_ROW_BYTES || Buffer.byteLength(text) <= MAX_ROW_BYTES) return null;
  const parts: string[] = [];
  for (let at = 0; at < text.length;) {
    let end = Math.min(at + MAX_PART_LENGTH, text.length);
    if (end < text.length && isHighSurrogate(text.charCodeAt(end - 1))) end -= 1;
    parts.push(text.slice(at, end));
    at = end;
  }
  return parts;
}

/** The parts of one generation. Use inside `run`. */
export class DocumentParts {
  readonly #parts: Collection<StoredPart>;
  readonly #rows: Collection<StoredDocument>;
  readonly #session: { readonly session?: ClientSession };

  /** @param session whose transaction the reads belong to */
  constructor(db: Db, collection: string, session?: ClientSession) {
    this.#session = session === undefined ? {} : { session };
    this.#rows = db.collection<StoredDocument>(collection);
    this.#parts = db.collection<StoredPart>(partsCollectionOf(collection));
  }

  /** Writes the parts of one document, before its row. */
  async write(key: string, position: Position, parts: readonly string[]): Promise<void> {
    for (const [number, text] of parts.entries()) {
      const filter = { _id: idOf(key, position, number) };
      await this.#parts.replaceOne(filter, { text }, { upsert: true });
    }
  }

  /** Deletes a key's parts of earlier positions; with `itself`, also those of this position. */
  async remove(key: string, position: Position, itself = false): Promise<void> {
    const from = key + SEPARATOR;
    const end = from + position + (itself ? '\u0002' : '');
    await this.#parts.deleteMany({ _id: { $gte: from, $lt: end } });
  }

  /**
   * Completes rows from their parts. A row whose parts have been replaced is read again; a deleted one is left out.
   * @throws ReadModelError `UNAVAILABLE` where the parts of a row stay incomplete
   */
  async complete<R extends Row>(rows: readonly R[]): Promise<readonly R[]> {
    if (!rows.some(({ parts }) => parts !== undefined)) return rows;
    const found: R[] = [];
    for (const row of rows) {
      const whole = await this.#wholeOf(row);
      if (whole !== null) found.push(whole);
    }
    return found;
  }

  async #wholeOf<R extends Row>(read: R): Promise<R | null> {
    let row: R = read;
    for (let attempt = 1; row.parts !== undefined; attempt += 1) {
      const ids = Array.from({ length: row.parts }, (_, n) => idOf(row._id, row._pos, n));
      const stored = await this.#parts
        .find({ _id: { $in: ids } }, { batchSize: 1, ...this.#session })
        .toArray();
      const texts = new Map(stored.map(({ _id, text }) => [_id, text]));
      if (texts.size === ids.length) {
        return { ...row, d: ids.map((id) => texts.get(id)).join('') };
      }
      if (attempt === MAX_ATTEMPTS) {
        throw new ReadModelError('UNAVAILABLE', `Parts of the document ${row._id} are missing`);
      }
      const now = await this.#rows.findOne({ _id: row._id, live: true }, this.#session);
      if (now === null) return null;
      row = { ...row, _pos: now._pos, parts: now.parts, d: now.d };
    }
    return row;
  }
}

function idOf(key: string, position: Position, number: number): string {
  return [key, position, String(number)].join(SEPARATOR);
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}
