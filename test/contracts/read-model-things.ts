import { expect } from 'chai';
import type { Position } from '../../domain/event-store.ts';
import type { JsonObject, JsonValue } from '../../domain/json.ts';
import {
  ReadModelError,
  type Filter,
  type Projection,
  type Query,
  type ReadModel,
  type ReadModelErrorCode,
  type ViewWriter,
} from '../../projections/read-model.ts';

/** What an adapter's test provides to the contract suite: one store, empty or not, for one test. */
export interface ReadModelHarness {
  readonly readModel: ReadModel;
  /** Another read model over the same store, as another process would open it. The harness closes it. */
  another(): Promise<ReadModel>;
  /**
   * Only for engines that write the documents before the checkpoint: lets the next `write` of a writer of
   * `readModel` stop after its documents, as if the process had died, so that it rejects with `UNAVAILABLE`.
   */
  readonly interruptBeforeCheckpoint?: () => void;
  close(): Promise<void>;
}

/** The document of the suite's projection. Any of the fields may be null or left out. */
export interface Thing extends JsonObject {
  readonly name?: string | null;
  readonly team?: string | null;
  readonly amount?: number | null;
  readonly active?: boolean | null;
  readonly tags?: readonly string[] | null;
  readonly about?: JsonValue;
}

export interface Written {
  readonly key: string;
  readonly position: Position;
  readonly document: Thing | null;
}

/** A position of fixed width, so that 9 sorts before 10. */
export function at(number: number): Position {
  return String(number).padStart(16, '0');
}

let projections = 0;

/** A projection that no other test, and no earlier run of the tests on the same server, has used. */
export function thingsProjection(schema = 1): Projection<Thing> {
  projections += 1;
  const letters = [...`${process.pid}.${Date.now()}.${projections}`]
    .map((character) => (character === '.' ? '_' : String.fromCharCode(97 + Number(character))))
    .join('');
  return {
    name: `things_${letters}`,
    schema,
    streams: ['thing-'],
    fields: { name: 'text', team: 'text', amount: 'number', active: 'boolean', tags: 'text-list' },
    indexes: [['name'], ['team', 'amount'], ['active', 'name'], ['amount'], ['tags']],
    // An adapter may drop such a document from its cache, and must still find it.
    isFinal: ({ active }) => active === false,
    keys: () => [],
    evolve: (document) => document,
  };
}

export function thing(key: string, position: number, document: Thing | null): Written {
  return { key, position: at(position), document };
}

/** Opens a writer (fence 1 where left out) on a generation. */
export function writerOf(
  readModel: ReadModel,
  projection: Projection,
  options: { readonly generation?: number; readonly bulk?: boolean; readonly fence?: number } = {},
): Promise<ViewWriter> {
  return readModel.openWriter(projection, {
    generation: options.generation ?? 1,
    bulk: options.bulk ?? false,
    fence: options.fence ?? 1,
  });
}

/** Writes one batch into a generation, from wherever its checkpoint is, and makes it the live one. */
export async function fill(
  readModel: ReadModel,
  projection: Projection,
  documents: readonly Written[],
  generation = 1,
): Promise<void> {
  const writer = await writerOf(readModel, projection, { generation });
  const from = await writer.checkpoint();
  const to = documents.reduce((last, { position }) => (position > last ? position : last), from);
  await writer.write({ documents, from, to });
  await writer.close();
  await readModel.switchTo(projection, generation);
}

/** The keys that a query finds, in order. */
export async function keysOf(
  readModel: ReadModel,
  projection: Projection<Thing>,
  query: Partial<Query>,
): Promise<readonly string[]> {
  const found = await readModel.find(projection, { filters: [], sort: [], limit: 1_000, ...query });
  return found.map(({ key }) => key);
}

/** All documents of a view by key, to compare two states of it. */
export async function contents(
  readModel: ReadModel,
  projection: Projection<Thing>,
): Promise<ReadonlyMap<string, Written>> {
  const found = await readModel.find(projection, { filters: [], sort: [], limit: 10_000 });
  return new Map(found.map((kept) => [kept.key, { ...kept }]));
}

/** Expects a rejection with this code. */
export async function rejectsWith(
  code: ReadModelErrorCode,
  promise: Promise<unknown>,
): Promise<void> {
  const outcome = await promise.then(
    () => 'the promise resolved',
    (error: unknown) => error,
  );
  expect(outcome, String(outcome)).to.be.instanceOf(ReadModelError);
  expect((outcome as ReadModelError).code).to.equal(code);
}

/** Whether a document passes a filter. The engines are compared with this reference. */
export function passes(filter: Filter, document: Thing): boolean {
  const value = document[filter.field] ?? null;
  switch (filter.op) {
    case 'eq':
      return value === filter.value;
    case 'in':
      return filter.value.some((one) => one === value);
    case 'contains':
      return typeof value === 'string' && lower(value).includes(lower(filter.value));
    case 'has':
      return Array.isArray(value) && value.includes(filter.value);
    default: {
      if (value === null) return false;
      const order = compare(value, filter.value);
      if (filter.op === 'gt') return order > 0;
      if (filter.op === 'gte') return order >= 0;
      return filter.op === 'lt' ? order < 0 : order <= 0;
    }
  }
}

/**
 * The order of values of one field: null first, false before true, strings by their UTF-8 bytes.
 */
export function compare(a: JsonValue, b: JsonValue): number {
  if (a === null || b === null) return Number(a !== null) - Number(b !== null);
  if (typeof a === 'string' && typeof b === 'string') {
    return Buffer.compare(Buffer.from(a), Buffer.from(b));
  }
  return Number(a) - Number(b);
}

/** The documents that a query should find: filtered, sorted, and cut to the page. */
export function expected(documents: readonly Written[], query: Query): readonly string[] {
  const last = query.sort.at(-1)?.direction ?? 'ascending';
  const order = [...query.sort.map((sort) => ({ ...sort })), { field: '', direction: last }];
  return documents
    .filter(({ document }) => document !== null)
    .filter(({ document }) => query.filters.every((filter) => passes(filter, document ?? {})))
    .sort((a, b) => {
      for (const { field, direction } of order) {
        const left = field === '' ? a.key : (a.document?.[field] ?? null);
        const right = field === '' ? b.key : (b.document?.[field] ?? null);
        const difference = compare(left, right);
        if (difference !== 0) return direction === 'ascending' ? difference : -difference;
      }
      return 0;
    })
    .slice(query.offset ?? 0, (query.offset ?? 0) + query.limit)
    .map(({ key }) => key);
}

function lower(text: string): string {
  return text.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase());
}
