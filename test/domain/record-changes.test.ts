import { expect } from 'chai';
import {
  assert,
  property,
  type Arbitrary,
  constantFrom,
  dictionary,
  integer,
  letrec,
  array,
  oneof,
} from 'fast-check';
import { changesBetween, type Change } from '../../domain/record-changes.ts';
import type { JsonObject, JsonValue } from '../../domain/json.ts';

describe('the differences between two states of a record', () => {
  it('are none if nothing differs', () => {
    const record = { title: 'a', payload: { pipeline: [{ uses: 'echo' }] }, tags: ['x'] };
    expect(changesBetween(record, structuredClone(record))).to.deep.equal([]);
    expect(changesBetween(null, null)).to.deep.equal([]);
  });

  it('include own fields, but no inherited ones', () => {
    const params = (text: string): JsonObject => JSON.parse(text) as JsonObject;
    const one = { params: params('{"a":1}') };
    const other = { params: params('{"a":1,"constructor":"x","__proto__":{"b":2}}') };
    const differences = [
      { path: 'params.constructor', value: 'x' },
      { path: 'params.__proto__', value: { b: 2 } },
    ];
    expect(changesBetween(one, other)).to.deep.equal(
      differences.map(({ path, value }) => ({ path, before: null, after: value })),
    );
    expect(changesBetween(other, one)).to.deep.equal(
      differences.map(({ path, value }) => ({ path, before: value, after: null })),
    );
  });

  it('have paths into nested objects and lists of objects', () => {
    const step = (text: string): JsonObject => ({ uses: 'echo', with: { text } });
    const before = { payload: { pipeline: [step('a'), step('b')] } };
    const after = { payload: { pipeline: [step('a'), step('c'), step('d')] } };
    expect(changesBetween(before, after)).to.deep.equal([
      { path: 'payload.pipeline.1.with.text', before: 'b', after: 'c' },
      { path: 'payload.pipeline.2', before: null, after: step('d') },
    ]);
  });

  it('contain a list of plain values as a whole', () => {
    expect(changesBetween({ tags: ['a', 'b'] }, { tags: ['a'] })).to.deep.equal([
      { path: 'tags', before: ['a', 'b'], after: ['a'] },
    ]);
  });

  it('of a created or deleted record are its fields that are set', () => {
    const record = { title: 'a', ends_at: null, payload: { params: { a: 1 } } };
    expect(changesBetween(null, record)).to.deep.equal([
      { path: 'title', before: null, after: 'a' },
      { path: 'payload', before: null, after: { params: { a: 1 } } },
    ]);
    expect(changesBetween(record, null).map(({ after }) => after)).to.deep.equal([null, null]);
  });

  it('applied to one state give the other', () => {
    assert(
      property(record, record, (before, after) => {
        const made = changesBetween(before, after).reduce(applied, before);
        expect(bare(made)).to.deep.equal(bare(after));
      }),
      { numRuns: 300 },
    );
  });
});

const { record } = letrec<{ value: JsonValue; record: JsonObject }>((tie) => ({
  value: oneof(
    { maxDepth: 3 },
    constantFrom<JsonValue[]>(1, 'a', true, 2),
    integer(),
    array(tie('value'), { maxLength: 3 }),
    tie('record'),
  ) as Arbitrary<JsonValue>,
  record: dictionary(constantFrom('a', 'b', 'c'), tie('value'), { maxKeys: 3 }),
}));

/** A state after a change. */
function applied(state: JsonObject, { path, after }: Change): JsonObject {
  const copy = structuredClone(state) as Record<string, JsonValue>;
  const parts = path.split('.');
  const last = parts.pop() ?? '';
  let at = copy;
  for (const part of parts) at = at[part] as Record<string, JsonValue>;
  at[last] = after;
  return copy;
}

/** The value without nulls, because null means the same as a missing value. */
function bare(value: JsonValue): JsonValue {
  if (Array.isArray(value)) {
    const items = (value as readonly JsonValue[]).map(bare);
    while (items.at(-1) === null) items.pop();
    return items;
  }
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, each]) => each !== null)
      .map(([key, each]) => [key, bare(each)]),
  );
}
