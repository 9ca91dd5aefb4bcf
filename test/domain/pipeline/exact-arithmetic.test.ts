import { expect } from 'chai';
import { parseExpression } from '../../../domain/pipeline/expression.ts';
import { PipelineError } from '../../../domain/pipeline/pipeline-error.ts';

const MAX_INTEGER = Number.MAX_SAFE_INTEGER;
const params = { most: MAX_INTEGER, big: 1e300, third: 1 / 3, none: 0 };
const evaluate = (text: string): unknown => parseExpression(text).evaluate({ params });

describe('numbers that an expression produces', () => {
  const fine: readonly (readonly [text: string, value: number | null])[] = [
    ['params.most - `1`', MAX_INTEGER - 1],
    ['params.most - `1` + `1`', MAX_INTEGER],
    ['params.big * `2`', 2e300],
    ['`1e20` + `1`', 1e20],
    ['params.most * `1.5`', MAX_INTEGER * 1.5],
    ['`7` / `2`', 3.5],
    ['`7` // `2`', 3],
    ['-(params.most)', -MAX_INTEGER],
    ['sum(`[1, 2, 0.5]`)', 3.5],
    ['sum([params.most, `-1`])', MAX_INTEGER - 1],
    ['sum([params.big, params.big])', 2e300],
    ['avg([params.most, params.most])', MAX_INTEGER],
    ["to_number('9007199254740991')", MAX_INTEGER],
    ["to_number('9007199254740993.0')", 9007199254740992],
    ["to_number('1e20')", 1e20],
    ['floor(params.big)', 1e300],
    ['avg(`[]`)', null],
  ];
  for (const [text, value] of fine) {
    it(`are kept: ${text}`, () => {
      expect(evaluate(text)).to.equal(value);
    });
  }

  const lost: readonly (readonly [text: string, says: string])[] = [
    ['params.most + `1`', 'the result is an integer beyond ±9007199254740991 (2^53 - 1)'],
    ['params.most * params.most', 'the result is an integer beyond'],
    ['-(params.most) - `1`', 'the result is an integer beyond'],
    ['sum([params.most, `2`, `-2`])', 'the result is an integer beyond'],
    ['params.big * params.big', 'the result is Infinity, which JSON cannot represent'],
    [
      'sum([params.big, params.big])*params.big',
      'the result is Infinity, which JSON cannot represent',
    ],
    ['`-1` / params.none', 'not-a-number'],
    ['`5` % params.none', 'the result is NaN, which JSON cannot represent'],
    ["to_number('7615917337495251231')", 'got 7615917337495251231; keep it as a string'],
    ["to_number('1e400')", 'got 1e400; keep it as a string'],
    ['{a: [params.most + `1`]}', 'the result is an integer beyond'],
  ];
  for (const [text, says] of lost) {
    it(`fail the expression if JavaScript would change them: ${text}`, () => {
      expect(() => evaluate(text))
        .to.throw(PipelineError)
        .with.property('message')
        .that.includes(`the expression "${text}" failed`)
        .and.includes(says);
    });
  }

  for (const text of ['`7615917337495251231`', 'params.a == `[1, {"b": 1e400}]`', '`-1e999`']) {
    it(`make an expression invalid if JavaScript cannot represent them: ${text}`, () => {
      expect(parseExpression(text).error).to.match(/is invalid: .*send it as a string/);
      expect(() => evaluate(text)).to.throw(PipelineError);
    });
  }

  it('may be written as strings', () => {
    expect(evaluate("'7615917337495251231'")).to.equal('7615917337495251231');
    expect(evaluate('`"7615917337495251231"`')).to.equal('7615917337495251231');
  });
});
