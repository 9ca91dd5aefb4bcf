import { EJSON, calculateObjectSize } from 'bson';
import { CommandError, duplicateKey, tooLargeForCache, writeConflict } from './command-error.ts';
import type { Doc } from './wire.ts';

/**
 * The data of the stand-in: collections in memory with their indexes, of which only `unique` has an
 * effect. Transactions work on a copy until they commit. Documents are immutable: a change stores a
 * new one. That makes copies cheap, and conflicts visible by identity.
 */

export interface Index {
  readonly name: string;
  readonly key: Doc;
  readonly unique: boolean;
  /** As given, for `listIndexes`. */
  readonly given: Doc;
}

/** A collection as a command sees it: the real one, or a transaction's copy. */
export class Table {
  readonly namespace: string;
  readonly indexes: Index[];
  readonly documents: Map<string, Doc>;
  readonly #beforeChange: (id: string, to?: Doc) => void;

  /** @param beforeChange called with each document to be changed and its new value; may throw */
  constructor(
    namespace: string,
    documents = new Map<string, Doc>(),
    indexes: Index[] = [],
    beforeChange: (id: string, to?: Doc) => void = () => undefined,
  ) {
    this.namespace = namespace;
    this.documents = documents;
    this.#beforeChange = beforeChange;
    this.indexes =
      indexes.length > 0
        ? indexes
        : [{ name: '_id_', key: { _id: 1 }, unique: true, given: { v: 2, key: { _id: 1 } } }];
  }

  /**
   * Stores a document, replacing one with the same `_id` if `replaces` is set.
   * @throws CommandError E11000, or 171 for two arrays in one index
   */
  put(document: Doc, replaces: boolean): void {
    const id = idOf(document);
    if (!replaces && this.documents.has(id)) {
      throw duplicateKey(this.namespace, '_id_', { _id: 1 }, { _id: document['_id'] });
    }
    this.#beforeChange(id, document);
    for (const index of this.indexes) {
      this.#refuseParallelArrays(index, document);
      if (index.unique && index.name !== '_id_') this.#refuseDuplicate(index, document, id);
    }
    this.documents.set(id, document);
  }

  remove(document: Doc): void {
    const id = idOf(document);
    this.#beforeChange(id);
    this.documents.delete(id);
  }

  #refuseDuplicate(index: Index, document: Doc, id: string): void {
    const mine = JSON.stringify(keyOf(index, document));
    for (const [other, held] of this.documents) {
      if (other !== id && JSON.stringify(keyOf(index, held)) === mine) {
        throw duplicateKey(this.namespace, index.name, index.key, keyOf(index, document));
      }
    }
  }

  #refuseParallelArrays(index: Index, document: Doc): void {
    const arrays = Object.entries(keyOf(index, document)).filter(([, held]) => Array.isArray(held));
    if (arrays.length < 2) return;
    const names = arrays.map(([field]) => `[${field}]`).join(' ');
    throw new CommandError(
      171,
      'CannotIndexParallelArrays',
      `cannot index parallel arrays ${names}`,
    );
  }
}

/** The collections for a command. */
export interface Tables {
  find(namespace: string): Table | undefined;
  /** Creates it if it does not exist. */
  open(namespace: string): Table;
}

/** All databases of one server. */
export class Storage implements Tables {
  /** Documents that an open transaction has changed, by namespace and key. */
  readonly claims = new Map<string, Transaction>();
  readonly #tables = new Map<string, Table>();

  find(namespace: string): Table | undefined {
    return this.#tables.get(namespace);
  }

  open(namespace: string): Table {
    const found = this.#tables.get(namespace);
    if (found !== undefined) return found;
    const made = new Table(namespace);
    this.#tables.set(namespace, made);
    return made;
  }

  drop(namespace: string): boolean {
    return this.#tables.delete(namespace);
  }

  /** All collections of all databases. */
  namespaces(): string[] {
    return [...this.#tables.keys()];
  }

  /** Names of a database's collections, without the database. */
  names(database: string): string[] {
    const prefix = `${database}.`;
    return [...this.#tables.keys()]
      .filter((namespace) => namespace.startsWith(prefix))
      .map((namespace) => namespace.slice(prefix.length));
  }
}

/**
 * Maximum size of a transaction's writes in bytes. A server ends a transaction whose changes exceed, by default, 15 %
 * of its cache (SERVER-61909). This is the limit for the smallest cache, 256 MB.
 */
const MAX_TRANSACTION = 0.15 * 256 * 1024 * 1024;

/**
 * A transaction: reads a copy of each collection as first accessed, and writes to that. It cannot
 * change a document changed since by others, or held by another open transaction: the statement
 * fails, and with it the transaction.
 */
export class Transaction implements Tables {
  readonly #storage: Storage;
  readonly #copies = new Map<string, { before: Map<string, Doc>; table: Table }>();
  readonly #limit: number;
  #bytes = 0;
  #resolve: () => void = () => undefined;
  /** Resolves when it has ended. */
  readonly over: Promise<void>;
  /** The transaction that holds the document this one could not change. */
  blockedBy: Transaction | undefined;

  /** @param limit of its writes, in bytes */
  constructor(storage: Storage, limit = MAX_TRANSACTION) {
    this.#storage = storage;
    this.#limit = limit;
    this.over = new Promise((resolve) => (this.#resolve = resolve));
  }

  find(namespace: string): Table | undefined {
    return this.#storage.find(namespace) === undefined && !this.#copies.has(namespace)
      ? undefined
      : this.open(namespace);
  }

  open(namespace: string): Table {
    const known = this.#copies.get(namespace);
    if (known !== undefined) return known.table;
    const real = this.#storage.find(namespace);
    const before = new Map(real?.documents);
    const table = new Table(namespace, new Map(before), real?.indexes, (id, to) => {
      const now = this.#storage.find(namespace)?.documents.get(id);
      const claim = `${namespace} ${id}`;
      const owner = this.#storage.claims.get(claim) ?? this;
      if (owner !== this) this.blockedBy = owner;
      if (now !== before.get(id) || owner !== this) throw writeConflict();
      this.#storage.claims.set(claim, this);
      this.#bytes += to === undefined ? 0 : calculateObjectSize(to);
      if (this.#bytes > this.#limit) throw tooLargeForCache();
    });
    this.#copies.set(namespace, { before, table });
    return table;
  }

  /**
   * Reads all collections as they are now, including those that it accesses later: the read concern
   * `snapshot`.
   */
  copyAll(): void {
    for (const namespace of this.#storage.namespaces()) this.open(namespace);
  }

  /** Releases its documents; called when it has ended, however it ended. */
  end(): void {
    for (const [claim, owner] of this.#storage.claims) {
      if (owner === this) this.#storage.claims.delete(claim);
    }
    this.#resolve();
  }

  /** @throws CommandError `WriteConflict` if another writer changed a document it changed */
  commit(): void {
    const changes: { readonly real: Table; readonly id: string; readonly to: Doc | undefined }[] =
      [];
    for (const [namespace, { before, table }] of this.#copies) {
      for (const id of new Set([...before.keys(), ...table.documents.keys()])) {
        const to = table.documents.get(id);
        if (to === before.get(id)) continue;
        const real = this.#storage.open(namespace);
        if (real.documents.get(id) !== before.get(id)) throw writeConflict();
        changes.push({ real, id, to });
      }
    }
    for (const { real, id, to } of changes) {
      if (to === undefined) real.documents.delete(id);
      else real.documents.set(id, to);
    }
  }
}

/** A document's `_id` as a string that is equal only for equal ones. */
export function idOf(document: Doc): string {
  return EJSON.stringify({ _id: document['_id'] });
}

function keyOf(index: Index, document: Doc): Doc {
  return Object.fromEntries(
    Object.keys(index.key).map((path) => [path, valueAt(document, path.split('.'))]),
  );
}

/** The value at a path; null if there is none. */
export function valueAt(value: unknown, path: readonly string[]): unknown {
  const [first, ...rest] = path;
  if (first === undefined) return value ?? null;
  if (typeof value !== 'object' || value === null) return null;
  return valueAt((value as Doc)[first], rest);
}
