import { Ajv } from 'ajv';
import { expect } from 'chai';
import fc from 'fast-check';
import { addLengthKeywords } from '../../../domain/events/length-keywords.ts';

describe('the lengths of strings in the schemas of events', () => {
  /** Characters of one code unit and of two, and each half of a surrogate pair alone. */
  const text = fc
    .array(fc.constantFrom('a', '\u00e9', '\u20ac', '\u{1f600}', '\ud83d', '\ude00'), {
      maxLength: 9,
    })
    .map((parts) => parts.join(''));

  it('are limited as in Ajv, with the same errors', () => {
    const options = { strict: false, meta: false, validateSchema: false } as const;
    const [theirs, ours] = [new Ajv(options), new Ajv(options)];
    addLengthKeywords(ours);
    for (const [minLength, maxLength] of [
      [0, 2],
      [1, 3],
      [3, 3],
      [4, 7],
    ] as const) {
      const schema = { type: 'string', minLength, maxLength };
      const [expected, check] = [theirs.compile(schema), ours.compile(schema)];
      fc.assert(
        fc.property(text, (value) => {
          expect(check(value)).to.equal(expected(value));
          expect(check.errors).to.deep.equal(expected.errors);
        }),
      );
    }
  });
});
