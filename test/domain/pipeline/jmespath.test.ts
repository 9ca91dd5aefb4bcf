import { expect } from 'chai';
import { parseExpression } from '../../../domain/pipeline/expression.ts';
import { PipelineError } from '../../../domain/pipeline/pipeline-error.ts';
import { cpuMs } from '../../support/cpu-time.ts';

const evaluate = (text: string, params: unknown = {}): unknown =>
  parseExpression(text).evaluate({ params });

describe('an expression', () => {
  const cases: readonly (readonly [text: string, value: unknown])[] = [
    ["replace('aabaaabaaaab', 'aa', '-')", '-b-ab--b'],
    ["replace('aabaaabaaaab', 'aa', '-', `0`)", 'aabaaabaaaab'],
    ["replace('aabaaabaaaab', 'aa', '-', `2`)", '-b-abaaaab'],
    ["replace('aabaaabaaaab', 'aa', '-', `400000000`)", '-b-ab--b'],
    ["replace('aaa', 'a', 'ba', `2`)", 'babaa'],
    ["replace('x', 'x', '$$5', `1`)", '$$5'],
    ["replace('x', 'x', '$&$&', `1`)", '$&$&'],
    ["replace('abc', '', '-')", 'a-b-c'],
    ["replace('abc', '', '-', `1`)", 'a-bc'],
    ["replace('', 'a', '-')", ''],
    ["split('a/b', '/', `5`)", ['a', 'b']],
    ["split('a/b/c', '/', `1`)", ['a', 'b/c']],
    ["split('abc', '', `1`)", ['a', 'bc']],
    ["split('', '')", []],
    ["split('😀b', '')", ['😀', 'b']],
    ['contains(`[[1]]`, `[1]`)', true],
    ['contains(`[{"a": [1, null]}]`, `{"a": [1, null]}`)', true],
    ['contains(`[{"a": 1}]`, `{"a": 2}`)', false],
    ['contains(`[1]`, `"1"`)', false],
    ["contains('a1', `1`)", false],
    ["contains('', '')", true],
    ["pad_left('', `5`)", '     '],
    ["pad_right('', `3`, '-')", '---'],
    ["pad_left('😀', `3`, '-')", '--😀'],
    ["pad_right('😀', `3`, '😀')", '😀😀😀'],
    ["pad_left('string', `5`)", 'string'],
    ["find_first('😀b', 'b')", 1],
    ["find_first('😀b😀b', 'b', `2`)", 3],
    ["find_first('😀b😀b', 'b', `0`, `1`)", null],
    ["find_first('😀b😀b', 'b', `-1`)", 3],
    ["find_first('abc', 'a', `0`, `0`)", null],
    ["find_first('subject string', 'string', `-99`, `100`)", 8],
    ["find_first('subject string', 'string', `0`, `13`)", null],
    ["find_first('abc', '')", null],
    ["find_last('😀b😀b', 'b')", 3],
    ["find_last('😀b😀b', 'b', `0`, `-1`)", 1],
    ["find_last('subject string', 's', `0`, `7`)", 0],
    ...['', ' 12 ', '0x10', '0b1', '+1', '.5', '1.', '007', '12n', 'NaN', '12\n'].map(
      (text) => [`to_number('${text}')`, null] as const,
    ),
    ["to_number('-0.50e+1')", -5],
    ["to_number('0')", 0],
    ['to_number(`7`)', 7],
    ['to_number(`true`)', null],
    ['let $a = `0` in let $b = `1` in $a', 0],
    ['let $a = `1` in [let $a = `2` in $a, $a]', [2, 1]],
    ['let $a = `1`, $b = $.params.n in map(&[@, $a, $b], `[7]`)', [[7, 1, 8]]],
    ['`[[1], 2, [[3]]]`[]', [1, 2, [3]]],
  ];
  for (const [text, value] of cases) {
    it(`evaluates: ${text}`, () => {
      expect(evaluate(text, { n: 8 })).to.deep.equal(value);
    });
  }

  const refused: readonly (readonly [text: string, says: string])[] = [
    ["replace('a', 'a', 'b', `-1`)", 'non-negative integer'],
    ["replace('a', 'a', 'b', `1.5`)", 'non-negative integer'],
    ["split('a', 'a', `-1`)", 'non-negative integer'],
    ["replace('a', 'a')", 'replace() takes'],
    ["pad_left('a', `3`, 'bc')", 'a single character'],
    ["pad_left('a', `-1`)", 'non-negative integer'],
    ["find_first('a', 'a', `0.5`)", 'expecting an integer'],
    ['to_number()', 'to_number() takes'],
    ['contains(`1`, `1`)', 'contains() expected'],
    ["join('', `[1]`)", 'join() expected'],
    ['[let $a = `1` in $a, $a]', 'variable'],
  ];
  for (const [text, says] of refused) {
    it(`fails with a reason: ${text}`, () => {
      expect(() => evaluate(text)).to.throw(PipelineError, says);
    });
  }

  describe('that searches a long part in a long string', () => {
    const half = 'a'.repeat(300);
    const places: readonly (readonly [text: string, first: number | null, last: number | null])[] =
      [
        [`${half}b${half}`, 0, 0],
        [`aab${half}b${half}b${half}c`, 3, 304],
        [`${half}${half}`, null, null],
        [`x${half}b${half.slice(1)}`, null, null],
      ];
    for (const [text, first, last] of places) {
      it(`finds it at ${first}, and from the end at ${last}`, () => {
        const params = { text, part: `${half}b${half}` };
        expect(evaluate('find_first(params.text, params.part)', params)).to.equal(first);
        expect(evaluate('find_last(params.text, params.part)', params)).to.equal(last);
        expect(evaluate('contains(params.text, params.part)', params)).to.equal(first !== null);
      });
    }

    it('splits by and replaces each', () => {
      const part = `${half}b${half}`;
      const params = { text: `1${part}2${part}${half}`, part };
      expect(evaluate('split(params.text, params.part)', params)).to.deep.equal(['1', '2', half]);
      expect(evaluate("replace(params.text, params.part, 'x')", params)).to.equal(`1x2x${half}`);
    });
  });

  describe('that exceeds its limits', () => {
    const list = Array.from({ length: 3000 }, (_, index) => index);
    const text = 'a'.repeat(100_000);
    const part = `${'a'.repeat(20_000)}b${'a'.repeat(20_000)}`;
    const texts = list.slice(0, 10).map(() => 'a'.repeat(10_000));
    const empty = Array.from({ length: 60_000 }, () => []);
    const params = { list, text, part, texts, empty };
    const replaceEach = "map(&replace($.params.text, 'a', 'bb', `10000`), params.list)";
    const bindings = list.map((index) => `$v${index} = params`).join(', ');
    const cases: readonly (readonly [what: string, text: string])[] = [
      ['counted replacements for each', replaceEach],
      ['a long part looked for by each', 'params.list[?contains($.params.text, $.params.part)]'],
      ['the same cut by', 'params.list[?split($.params.text, $.params.part) == @]'],
      ['lists of nothing dissolved by each', 'params.empty[?$.params.empty[]]'],
      ['a list of very many', 'length(map(&$.params.empty, params.list)[])'],
      ['a text of very many', "join('', map(&$.params.text, params.list))"],
      ['very long texts between', "join(params.text, map(&'', params.list))"],
      ['very long texts put in', "replace(params.text, 'a', params.text)"],
      ['very many names for each', `params.list[?let ${bindings} in \`true\`]`],
    ];
    for (const [what, text] of cases) {
      it(`fails soon: ${what}`, async () => {
        const spent = await cpuMs(() =>
          expect(() => evaluate(text, params)).to.throw(PipelineError),
        );
        expect(spent).to.be.lessThan(2000);
      });
    }

    it('unless it replaces many parts of a long string once', async () => {
      const once = "length(replace(params.text, 'a', 'bb', `10000`))";
      const inEach = "length(map(&replace(@,'a','b',`10000`), params.texts))";
      const spent = await cpuMs(() => {
        expect(evaluate(once, params)).to.equal(110_000);
        expect(evaluate(inEach, params)).to.equal(10);
      });
      expect(spent).to.be.lessThan(1000);
    });
  });
});
