import { Long, calculateObjectSize } from 'bson';
import { CommandError } from './command-error.ts';
import { aggregate, asDoc, asDocs, matching, shaped } from './evaluation.ts';
import type { Tables } from './storage.ts';
import type { Doc } from './wire.ts';

/** find, aggregate, count, and the cursors of the first two. */

const DEFAULT_BATCH = 101;

/**
 * Maximum total size of one response's documents in bytes, unless there is only one; `getMore`
 * returns the rest.
 */
const MAX_ANSWER = 16 * 1024 * 1024;

/** Memory limit of a sort in bytes. */
const SORT_MEMORY = 100 * 1024 * 1024;

export class Cursors {
  #last = 0;
  readonly #sortMemory: number;
  readonly #rest = new Map<number, { readonly namespace: string; readonly documents: Doc[] }>();

  /** @param sortMemory memory limit of a sort in bytes */
  constructor(sortMemory = SORT_MEMORY) {
    this.#sortMemory = sortMemory;
  }

  find(tables: Tables, namespace: string, command: Doc, now: number): Doc {
    const found = matching(tables.find(namespace), asDoc(command['filter']), now);
    this.#refuseLargeSort(found, command);
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
    const nextBatch = cursor.documents.splice(0, fitting(cursor.documents, size));
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

  /** A response with one batch, for lists that are never long. */
  static whole(namespace: string, firstBatch: readonly Doc[]): Doc {
    return { cursor: { id: Long.ZERO, ns: namespace, firstBatch }, ok: 1 };
  }

  /**
   * Refuses a sort that needs too much memory, like servers before 6.0, and later ones with
   * `allowDiskUseByDefault` off. A sort by key needs none, because the keys are the only sorted
   * index here. With a limit, the sort keeps limit plus skip documents, at most the largest ones
   * (the server's own `jstests/core/sortb.js`).
   */
  #refuseLargeSort(found: readonly Doc[], command: Doc): void {
    const fields = Object.keys(asDoc(command['sort']));
    if (fields.length === 0 || fields[0] === '_id' || command['allowDiskUse'] === true) return;
    const limit = Math.abs(Number(command['limit'] ?? 0));
    const kept = limit === 0 ? Infinity : Number(command['skip'] ?? 0) + limit;
    const sizes = found.map((document) => calculateObjectSize(document)).sort((a, b) => b - a);
    const bytes = sizes.slice(0, kept).reduce((sum, size) => sum + size, 0);
    if (bytes <= this.#sortMemory) return;
    const message = `Sort exceeded memory limit of ${this.#sortMemory} bytes, but did not opt in to external sorting.`;
    throw new CommandError(292, 'QueryExceededMemoryLimitNoDiskUseAllowed', message);
  }

  #first(namespace: string, documents: readonly Doc[], size: unknown, single: boolean): Doc {
    const batch = fitting(documents, Number(size ?? DEFAULT_BATCH));
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

/** The number of documents in one response. @param size the requested number */
function fitting(documents: readonly Doc[], size: number): number {
  let bytes = 0;
  for (const [index, document] of documents.slice(0, size).entries()) {
    bytes += calculateObjectSize(document);
    if (index > 0 && bytes > MAX_ANSWER) return index;
  }
  return size;
}

export function count(tables: Tables, namespace: string, command: Doc, now: number): Doc {
  return { n: matching(tables.find(namespace), asDoc(command['query']), now).length, ok: 1 };
}
