import { expect } from 'chai';
import { parseExpression } from '../../../domain/pipeline/expression.ts';
import {
  equalityKey,
  requiredEquality,
  valueAt,
} from '../../../domain/pipeline/required-equality.ts';

describe('the equality that a condition requires', () => {
  const found: readonly (readonly [condition: string, path: string, value: unknown])[] = [
    ["event.payload.id == 'a'", 'event.payload.id', 'a'],
    ['`3` == event.payload.n', 'event.payload.n', 3],
    ["event.payload.ok && event.topic == 'x'", 'event.topic', 'x'],
    ['event.payload.gone == `null`', 'event.payload.gone', null],
  ];
  for (const [condition, path, value] of found) {
    it(`is found in ${condition}`, () => {
      const wanted = { path: path.split('.'), key: equalityKey(value) };
      expect(requiredEquality(condition)).to.deep.equal(wanted);
    });
  }

  for (const condition of [
    "event.payload.a == 'x' || event.payload.b == 'y'",
    "!(event.payload.a == 'x')",
    "event.payload.a != 'x'",
    'event.payload.a == event.payload.b',
    'event.payload.a == `[1]`',
    "event.payload.list[0] == 'x'",
    'event.payload.a ==',
  ]) {
    it(`is not found in ${condition}`, () => {
      expect(requiredEquality(condition)).to.equal(null);
    });
  }

  it('is true whenever the condition is', () => {
    const values = ['a', 'b', 3, '3', 0, null, true, false, ['a'], { a: 1 }, ''];
    for (const value of values) {
      const scope = { event: { payload: { id: value } } };
      for (const constant of ["'a'", '`3`', '`null`', '`false`', "''", '`0`']) {
        const condition = `event.payload.id == ${constant}`;
        const holds = parseExpression(condition).evaluate(scope) === true;
        const equality = requiredEquality(condition);
        const key = equalityKey(valueAt(equality?.path ?? [], scope) ?? null);
        expect(key === equality?.key, `${condition} of ${JSON.stringify(value)}`).to.equal(holds);
      }
    }
  });
});
