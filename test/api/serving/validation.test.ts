import { Type } from '@sinclair/typebox';
import { expect } from 'chai';
import fc from 'fast-check';
import { HttpError } from '../../../api/errors.ts';
import { bodyCheck, queryCheck } from '../../../api/serving/validation.ts';

const fields = { name: Type.String({ minLength: 1, maxLength: 4 }) };
const schema = Type.Object(fields, { additionalProperties: false });

/** The error of a check for a name; null: none. */
function issueOf(check: (given: { name: string }) => unknown, name: string): string | null {
  try {
    check({ name });
    return null;
  } catch (error) {
    return (error as { readonly message: string }).message;
  }
}

describe('the lengths of strings over HTTP', () => {
  /** Characters of one UTF-16 unit and of two, and each half of two units alone. */
  const text = fc
    .array(fc.constantFrom('a', '\u20ac', '\u{1f600}', '\ud83d', '\ude00'), { maxLength: 7 })
    .map((parts) => parts.join(''));

  for (const [kind, check] of [
    ['a body', bodyCheck(schema)],
    ['a query', queryCheck(schema)],
  ] as const) {
    it(`are counted in characters, and reported with their limit, in ${kind}`, () => {
      fc.assert(
        fc.property(text, (name) => {
          const { length } = [...name];
          const issue = issueOf(check, name);
          if (length < 1) expect(issue).to.include('must not be empty');
          else if (length > 4) expect(issue).to.include('must have at most 4 characters');
          else expect(issue).to.equal(null);
        }),
      );
    });
  }
});

describe('the numbers of a query', () => {
  const check = queryCheck(Type.Object({ limit: Type.Optional(Type.Integer({ maximum: 200 })) }));

  it('are those of JSON, with leading zeros allowed', () => {
    for (const [text, limit] of [
      ['10', 10],
      ['010', 10],
      ['1e2', 100],
      ['-1', -1],
    ] as const) {
      expect(check({ limit: text }), text).to.deep.equal({ limit });
    }
    for (const text of ['0x10', '0b11', ' 10 ', '+1', '1_0', '', 'Infinity', '1.5']) {
      expect(() => check({ limit: text }), text).to.throw('limit: must be integer');
    }
  });
});

describe('the name of an invalid field', () => {
  it('is cut after a complete character', () => {
    const name = `${'x'.repeat(199)}\u{1f600}`;
    for (const more of [
      {},
      Object.fromEntries(Array.from({ length: 200 }, (_, n) => [`k${n}`, n])),
    ]) {
      expect(() => bodyCheck(schema)({ name: 'a', [name]: 1, ...more }))
        .to.throw(HttpError)
        .with.property('details')
        .that.satisfies((details: object) => !/\\ud83d/.test(JSON.stringify(details)));
    }
  });
});

describe('a body that is far too large', () => {
  const list = Type.Object(
    { tags: Type.Optional(Type.Array(Type.String({ minLength: 1 }), { maxItems: 3 })) },
    { additionalProperties: false },
  );
  const check = bodyCheck(list);

  it('is rejected before each part of it is checked', () => {
    expect(() => check({ tags: ['', '', '', ''] })).to.throw(/^tags: must have at most 3 items$/);
    const many = Object.fromEntries(Array.from({ length: 50_000 }, (_, n) => [`x${n}`, n]));
    expect(() => check({ ...many, tags: [] })).to.throw(/^x0: is not a known field/);
    expect(() => check({ tags: ['', 'b', 'c'] })).to.throw('tags.0: must not be empty');
  });
});
