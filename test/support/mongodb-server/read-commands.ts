import { Long } from 'bson';
import { CommandError } from './command-error.ts';
import { aggregate, asDoc, asDocs, matching, shaped } from './evaluation.ts';
import type { Tables } from './storage.ts';
import type { Doc } from './wire.ts';

/** find, aggregate, count, and the cursors over what the first two found. */

const DEFAULT_BATCH = 101;

export class Cursors {
  #last = 0;
  readonly #rest = new Map<number, { readonly namespace: string; readonly documents: Doc[] }>();

  find(tables: Tables, namespace: string, command: Doc, now: number): Doc {
    const found = matching(tables.find(namespace), asDoc(command['filter']), now);
    const single = command['singleBatch'] === true || Number(command['limit'] ?? 0) < 0;
    return this.#first(namespace, shaped(found, command, now), command['batchSize'], single);
  }

  aggregate(tables: Tables, namespace: string, command: Doc, now: number): Doc {
    const documents = [...(tables.find(namespace)?.documents.values() ?? [])];
    const result = aggregate(documents, asDocs(command['pipeline']), now);
    return this.#first(namespace, result, asDoc(command['cursor'])['batchSize'], false);
  }

  getMore(command: Doc): Doc {
    const id = Number(command['getMore']);
    const cursor = this.#rest.get(id);
    if (cursor === undefined) {
      throw new CommandError(43, 'CursorNotFound', `cursor id ${id} not found`);
    }
    const size = Number(command['batchSize'] ?? Infinity);
    const nextBatch = cursor.documents.splice(0, size);
    const done = cursor.documents.length === 0;
    if (done) this.#rest.delete(id);
    return {
      cursor: { id: Long.fromNumber(done ? 0 : id), ns: cursor.namespace, nextBatch },
      ok: 1,
    };
  }

  kill(command: Doc): Doc {
    const ids = Array.isArray(command['cursors']) ? command['cursors'].map(Number) : [];
    for (const id of ids) this.#rest.delete(id);
    return { cursorsKilled: ids.map((id) => Long.fromNumber(id)), ok: 1 };
  }

  /** An answer of one batch, for lists that are never long. */
  static whole(namespace: string, firstBatch: readonly Doc[]): Doc {
    return { cursor: { id: Long.ZERO, ns: namespace, firstBatch }, ok: 1 };
  }

  #first(namespace: string, documents: readonly Doc[], size: unknown, single: boolean): Doc {
    const batch = Number(size ?? DEFAULT_BATCH);
    const rest = documents.slice(batch);
    if (single || rest.length === 0) return Cursors.whole(namespace, documents.slice(0, batch));
    this.#last += 1;
    this.#rest.set(this.#last, { namespace, documents: rest });
    return {
      cursor: {
        id: Long.fromNumber(this.#last),
        ns: namespace,
        firstBatch: documents.slice(0, batch),
      },
      ok: 1,
    };
  }
}

export function count(tables: Tables, namespace: string, command: Doc, now: number): Doc {
  return { n: matching(tables.find(namespace), asDoc(command['query']), now).length, ok: 1 };
}
