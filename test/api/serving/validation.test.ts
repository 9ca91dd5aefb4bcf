import { Type } from '@sinclair/typebox';
import { expect } from 'chai';
import fc from 'fast-check';
import { bodyCheck, queryCheck } from '../../../api/serving/validation.ts';

const fields = { name: Type.String({ minLength: 1, maxLength: 4 }) };
const schema = Type.Object(fields, { additionalProperties: false });

/** What a check says is wrong with a name; null where nothing is. */
function issueOf(check: (given: { name: string }) => unknown, name: string): string | null {
  try {
    check({ name });
    return null;
  } catch (error) {
    return (error as { readonly message: string }).message;
  }
}

describe('the lengths of texts over HTTP', () => {
  /** Characters of one unit and of two, and each half of two units alone. */
  const text = fc
    .array(fc.constantFrom('a', '\u20ac', '\u{1f600}', '\ud83d', '\ude00'), { maxLength: 7 })
    .map((parts) => parts.join(''));

  for (const [kind, check] of [
    ['a body', bodyCheck(schema)],
    ['a query', queryCheck(schema)],
  ] as const) {
    it(`are counted in characters, and told with their bound, in ${kind}`, () => {
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
