import { expect } from 'chai';
import fc from 'fast-check';
import {
  isRepresentable,
  lostIssue,
  lostNumbers,
  parseKeepingDigits,
  stringifyExactly,
  writeJson,
} from '../../domain/exact-numbers.ts';
import { cpuMs } from '../support/cpu-time.ts';

/** The numbers that would change in a JSON string, as `path: digits`. */
const lostIn = (text: string): readonly string[] =>
  lostNumbers(text).map(({ path, digits }) => `${path.join('.')}: ${digits}`);

describe('numbers that JavaScript cannot represent', () => {
  it('are integers beyond 2^53 - 1, and numbers that overflow', () => {
    const fine = ['0', '-0', '9007199254740991', '-9007199254740991', '9007199254740993.0'];
    const floats = ['1e20', '1e308', '-1.7976931348623157e308', '0.12345678901234567890', '1e-400'];
    const lost = ['9007199254740992', '-9007199254740992', '7615917337495251231'];
    const overflowing = ['1e309', '-1E+309', '1.0e400', '9'.repeat(400), '1e0400'];
    for (const digits of [...fine, ...floats]) {
      expect(isRepresentable(digits), digits).to.equal(true);
      expect(lostIn(`{"a": ${digits}}`), digits).to.deep.equal([]);
    }
    for (const digits of [...lost, ...overflowing]) {
      expect(isRepresentable(digits), digits).to.equal(false);
      for (const end of ['}', ' }', '\n}', ',"b":1}']) {
        expect(lostIn(`{"a":${digits}${end}`), digits).to.deep.equal([`a: ${digits}`]);
      }
      expect(lostIn(digits)).to.deep.equal([`: ${digits}`]);
    }
  });

  it('are never written, because a large float keeps its exponent', () => {
    expect(writeJson([1e20, -(2 ** 53), 2 ** 53 - 1, '100000000000000000000', null])).to.equal(
      '[1e+20,-9.007199254740992e+15,9007199254740991,"100000000000000000000",null]',
    );
    expect(writeJson({ a: [1e20] }, 2)).to.equal('{\n  "a": [\n    1e+20\n  ]\n}');
    const number = fc.oneof(
      fc.double({ noDefaultInfinity: true, noNaN: true }),
      fc.bigInt({ min: -(10n ** 22n), max: 10n ** 22n }).map(Number),
    );
    fc.assert(
      fc.property(fc.array(fc.record({ n: number, s: fc.string() })), (value) => {
        const text = writeJson(value);
        expect(lostIn(text)).to.deep.equal([]);
        expect(text === JSON.stringify(value)).to.equal(lostIn(JSON.stringify(value)).length === 0);
        expect(JSON.parse(text)).to.deep.equal(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  it('are found with their paths, and not within strings', () => {
    const big = '7615917337495251231';
    const text = String.raw`{"a\"b": [1, {"c": ${big}}, "${big}", "\\", [${big}, {}, [], 1e999]],
      "${big}": "x", "\u0064": {"e": {}, "f" : ${big} }}`;
    expect(lostIn(text)).to.deep.equal([
      `a"b.1.c: ${big}`,
      `a"b.4.0: ${big}`,
      'a"b.4.3: 1e999',
      `d.f: ${big}`,
    ]);
  });

  it('are found anywhere in any JSON', () => {
    const big = '7615917337495251231';
    fc.assert(
      fc.property(
        fc.json({ maxDepth: 5 }),
        fc.array(fc.string(), { maxLength: 4 }),
        (json, path) => {
          const wrapped = path.reduceRight(
            (inner, name) => `{"before": ${json}, ${JSON.stringify(name)} : [${json}, ${inner}]}`,
            big,
          );
          const own = lostIn(json).length;
          const found = lostNumbers(wrapped);
          expect(found).to.have.length(1 + 2 * own * path.length);
          const steps = path.flatMap((name) => [name, '1']);
          const seen = found.map((each) => each.path.join('\n'));
          expect(seen).to.include(steps.join('\n'));
        },
      ),
    );
  });

  it('come with a remedy', () => {
    expect(lostIssue({ digits: '9007199254740992' })).to.equal(
      'must be an integer within ±9007199254740991 (2^53 - 1), got 9007199254740992; send it as a string',
    );
    expect(lostIssue({ digits: '1e400' })).to.equal(
      'must be a number within ±1.8e308, got 1e400; send it as a string',
    );
    expect(lostIssue({ digits: '1'.repeat(1000) })).to.have.length.below(200);
  });

  it('are found in linear time, however many there are and however deep', async () => {
    const deep = '[1e999,'.repeat(100_000) + '1' + ']'.repeat(100_000);
    const spent = await cpuMs(() => expect(lostNumbers(deep)).to.have.length(100_000));
    expect(spent).to.be.below(3000);
  });
});

describe('JSON parsed with all digits', () => {
  it('has strings in place of numbers that would change', () => {
    const text =
      '{"id": 7615917337495251231, "list": [1, -9007199254740993, 2.50, 1e400], "s": "x"}';
    const { value, warnings } = parseKeepingDigits(text);
    expect(value).to.deep.equal({
      id: '7615917337495251231',
      list: [1, '-9007199254740993', 2.5, '1e400'],
      s: 'x',
    });
    expect(warnings).to.deep.equal([
      'body.id: kept 7615917337495251231 as a string; JavaScript cannot represent this number',
      'body.list.1: kept -9007199254740993 as a string; JavaScript cannot represent this number',
      'body.list.3: kept 1e400 as a string; JavaScript cannot represent this number',
    ]);
  });

  it('equals the result of JSON.parse if no number would change', () => {
    fc.assert(
      fc.property(fc.json(), (json) => {
        fc.pre(lostNumbers(json).length === 0);
        expect(parseKeepingDigits(json)).to.deep.equal({ value: JSON.parse(json), warnings: [] });
      }),
    );
  });

  it('has few warnings, however many numbers there are', () => {
    const { value, warnings } = parseKeepingDigits(`[${'9007199254740993,'.repeat(499)}1]`);
    expect((value as unknown[])[498]).to.equal('9007199254740993');
    expect(warnings).to.have.length(11);
    expect(warnings[10]).to.equal('kept 489 more numbers as strings');
  });

  it('is refused if it is not JSON', () => {
    expect(() => parseKeepingDigits('{"a": 9007199254740993')).to.throw(SyntaxError);
  });
});

describe('values written as JSON', () => {
  it('report each number that JSON cannot represent, with its path', () => {
    const shared = { n: Number.NaN };
    const value = { a: [1, { b: Infinity }], shared, again: [shared], big: 2 ** 53, date: 5 };
    const { text, lost } = stringifyExactly(value);
    expect(text).to.equal(JSON.stringify(value));
    expect(lost.map(({ path, digits }) => `${path.join('.')}: ${digits}`)).to.deep.equal([
      'a.1.b: Infinity',
      'shared.n: NaN',
      'again.0.n: NaN',
      'big: 9007199254740992',
    ]);
    expect(stringifyExactly(-Infinity).lost.map(({ path }) => path)).to.deep.equal([[]]);
    expect(stringifyExactly({ x: 1.5, y: 1e300 }).lost).to.deep.equal([]);
    expect(stringifyExactly(() => 1)).to.deep.equal({ text: undefined, lost: [] });
  });
});
