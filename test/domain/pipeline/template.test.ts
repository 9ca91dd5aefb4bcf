import { expect } from 'chai';
import type { JsonValue } from '../../../domain/json.ts';
import type { Scope } from '../../../domain/pipeline/expression.ts';
import { PipelineError } from '../../../domain/pipeline/pipeline-error.ts';
import { PlacedSecrets } from '../../../domain/pipeline/placed-secrets.ts';
import { compileTemplate, soleExpression } from '../../../domain/pipeline/template.ts';
import { cpuMs } from '../../support/cpu-time.ts';

function scope(values: Partial<Scope> = {}): Scope {
  return {
    now: '2026-03-01T12:00:00.000Z',
    params: {},
    steps: {},
    event: null,
    task: { id: 't1' },
    run: { id: 'r1', attempt: 2 },
    item: null,
    index: null,
    secrets: new PlacedSecrets(new Map([['TOKEN', 'hush']])),
    ...values,
  };
}

const render = (value: JsonValue, values: Partial<Scope> = {}): JsonValue =>
  compileTemplate(value).render(scope(values));

describe('a template', () => {
  const params = {
    n: 7,
    yes: true,
    list: [1, 2],
    o: { a: { b: 'x' } },
    nothing: null,
    text: '${params.n}',
    people: [
      { name: 'Ada', age: 36 },
      { name: 'Bob', age: 17 },
    ],
  };

  describe('that is one expression', () => {
    const cases: readonly (readonly [text: string, value: JsonValue])[] = [
      ['${params.n}', 7],
      ['${ params.n }', 7],
      ['${params.yes}', true],
      ['${params.list}', [1, 2]],
      ['${params.o}', { a: { b: 'x' } }],
      ['${params.nothing}', null],
      ['${params.missing.deep}', null],
      ['${nobody}', null],
      ['${params.people[?age > `18`].name | [0]}', 'Ada'],
      ['${params.n + `1`}', 8],
      ['${sort(`[10, 9, 1, 100]`)}', [1, 9, 10, 100]],
      ['${sort(`["b", "\ud83d\ude00", "\uffee", "B"]`)}', ['B', 'b', '\uffee', '\ud83d\ude00']],
      ['${max_by(params.people, &name).age}', 17],
      ['${min_by(params.people, &name).age}', 36],
      ['${max(`[]`)}', null],
      ['${contains(params.list, &@)}', false],
      ['${map(&(age - $.params.n), params.people)}', [29, 10]],
      ['${let $one = `1` in map(&(@ + $one), params.list)}', [2, 3]],
      ["${keys(group_by(params.people, &join('', [$.params.o.a.b, name])))}", ['xAda', 'xBob']],
      ['${let $young = `18` in sort_by(params.people, &(age - $young))[].name}', ['Bob', 'Ada']],
      ["${{who: params.people[0].name, fix: 'a}b'}}", { who: 'Ada', fix: 'a}b' }],
      ['${`{"a": "}"}`}', { a: '}' }],
      ['${"params".n}', 7],
      ["${'it\\'s {'}", "it's {"],
      ['${run.attempt}', 2],
    ];
    for (const [text, value] of cases) {
      it(`keeps the type of the value: ${text}`, () => {
        expect(render(text, { params })).to.deep.equal(value);
      });
    }
  });

  describe('with expressions within a string', () => {
    const cases: readonly (readonly [text: string, value: string])[] = [
      ['n is ${params.n}!', 'n is 7!'],
      ['${params.n}${params.n}', '77'],
      ['${params.nothing} and ${params.yes}', 'null and true'],
      ['o: ${params.o}; l: ${params.list}', 'o: {"a":{"b":"x"}}; l: [1,2]'],
      [' ${params.n}', ' 7'],
      ['costs $5 {or so}', 'costs $5 {or so}'],
      ['${params.n} of ${params.n', '7 of ${params.n'],
      ['${ and ${params.n}', '${ and 7'],
      ['${', '${'],
    ];
    for (const [text, value] of cases) {
      it(`renders to a string: ${text}`, () => {
        expect(render(text, { params })).to.equal(value);
      });
    }
  });

  it('is rendered at any depth, but not in keys', () => {
    const value = { '${params.n}': ['${params.n}', { deep: 'x${params.n}' }], plain: 1 };
    expect(render(value, { params })).to.deep.equal({
      '${params.n}': [7, { deep: 'x7' }],
      plain: 1,
    });
  });

  it("does not render an expression's value again", () => {
    expect(render('${params.text}', { params })).to.equal('${params.n}');
    expect(render('<${params.text}>', { params })).to.equal('<${params.n}>');
  });

  it('has item and index', () => {
    expect(render('${index}: ${item.a}', { item: { a: 'x' }, index: 3 })).to.equal('3: x');
  });

  it('is constant and frozen without an expression', () => {
    const template = compileTemplate({ a: ['${unclosed', 1] });
    expect(template.constant).to.equal(true);
    expect(Object.isFrozen(template.render(scope()))).to.equal(true);
  });

  describe('with now', () => {
    const cases: readonly (readonly [text: string, value: string])[] = [
      ['${now}', '2026-03-01T12:00:00.000Z'],
      ['${now+24h}', '2026-03-02T12:00:00.000Z'],
      ['${now - 30s}', '2026-03-01T11:59:30.000Z'],
      ['${now+1d-2h+5m}', '2026-03-02T10:05:00.000Z'],
      ['${now-1w}', '2026-02-22T12:00:00.000Z'],
      ['at ${now+1m}', 'at 2026-03-01T12:01:00.000Z'],
      ["${join(' ', ['now+1h', now+1h])}", 'now+1h 2026-03-01T13:00:00.000Z'],
    ];
    for (const [text, value] of cases) {
      it(`computes ${text}`, () => {
        expect(render(text)).to.equal(value);
      });
    }

    it('supports now+1h within other expressions, even in a projection', () => {
      const value = render('${params.list[*].{at: now+1h}}', { params: { list: [1] } });
      expect(value).to.deep.equal([{ at: '2026-03-01T13:00:00.000Z' }]);
    });

    it('fails on a date that does not exist', () => {
      expect(() => render('${now+99999999999w}')).to.throw(PipelineError, /is not a valid date/);
    });
  });

  describe('with an invalid expression', () => {
    for (const text of ['${params.[}', 'a ${foo(} b', '${}', '${now+5y}']) {
      it(`fails when rendered, naming it: ${text}`, () => {
        const template = compileTemplate(text);
        const expression = soleExpression(text) ?? 'foo(';
        expect(() => template.render(scope())).to.throw(PipelineError, `"${expression}"`);
      });
    }

    it('quotes the beginning of a long one up to a whole character', () => {
      const beginning = 'a'.repeat(199);
      const template = compileTemplate(`\${${beginning}😀(}`);
      expect(() => template.render(scope())).to.throw(PipelineError, `"${beginning}…"`);
    });

    it('reports no half of a surrogate pair', () => {
      const template = compileTemplate('${a😀(}');
      expect(() => template.render(scope())).to.throw(PipelineError, /^\P{Surrogate}+$/u);
    });

    for (const [what, text] of [
      ['has thousands of nested parts', `${'a||'.repeat(20_000)}a`],
      ['is longer than any payload', 'a'.repeat(300_000)],
    ] as const) {
      it(`fails when rendered, not before, if it ${what}`, () => {
        const template = compileTemplate(`\${${text}}`);
        expect(() => template.render(scope({}))).to.throw(PipelineError, 'is invalid');
      });
    }

    it('fails on an unknown function or a wrong argument type', () => {
      for (const text of ['${nope(params)}', '${nope(`[]`, &@)}']) {
        expect(() => render(text)).to.throw(PipelineError, /nope/);
      }
      expect(() => render('${length(params.n)}')).to.throw(PipelineError, /length/);
    });
  });

  describe('with a secret', () => {
    it('contains its value', () => {
      expect(render('Bearer ${secrets.TOKEN}')).to.equal('Bearer hush');
    });

    it('fails for a secret that is not allowed there, and names it', () => {
      const message = 'the secret OTHER cannot be used here: a secret is used whole';
      expect(() => render('${secrets.OTHER}')).to.throw(PipelineError, message);
    });

    for (const text of [
      '${reverse(secrets.TOKEN)}',
      "${join('-', [secrets.TOKEN, 'a'])}",
      "${secrets.TOKEN || 'none'}",
      '${secrets.TOKEN == `1`}',
      '${secrets.TOKEN[0:1]}',
      '${secrets.TOKEN.length}',
      '${secrets}',
      '${@.secrets.TOKEN}',
      '${$.secrets.TOKEN}',
      '${[@][0].secrets.TOKEN}',
      '${map(&secrets.TOKEN, [@])}',
      '${let $s = secrets in $s.TOKEN}',
      '${@ | secrets.TOKEN}',
      '${values(@)[*].TOKEN}',
    ]) {
      it(`gives no secret to an expression: ${text}`, () => {
        expect(() => render(text)).to.throw(/a secret is used whole/);
      });
    }

    const used = '${[secrets.TOKEN == `1`, values([secrets][0])]}';
    for (const text of [
      '${secrets}',
      '${keys(secrets)}',
      '${values(secrets)}',
      '${secrets.*}',
      used,
    ]) {
      it(`does not list secrets: ${text}`, () => {
        const read = (): string => {
          try {
            return JSON.stringify(render(text));
          } catch (error) {
            return String(error);
          }
        };
        expect(read()).not.to.include('hush');
      });
    }
  });

  describe('that reads inherited properties', () => {
    for (const name of ['constructor', '__proto__', 'toString', 'hasOwnProperty']) {
      it(`is null for ${name}`, () => {
        expect(render(`\${params.${name}}`)).to.equal(null);
        expect(render(`\${params.${name}.x || 'none'}`)).to.equal('none');
        expect(render(`\${[params][0].${name}}`)).to.equal(null);
      });
    }

    it('reads an own property of such a name', () => {
      const params = JSON.parse('{"__proto__": 1, "constructor": "Ferrari"}') as JsonValue;
      expect(render('${params.constructor}', { params })).to.equal('Ferrari');
      expect(render('${params.__proto__}', { params })).to.equal(1);
    });

    it('keeps a created or merged member __proto__ as an own property', () => {
      const payload = JSON.parse('{"__proto__": {"polluted": 1}, "n": 8}') as JsonValue;
      const values = { params: { ...params, payload } };
      const made = render('${{"__proto__": params.n, a: params.yes}}', values);
      expect(JSON.stringify(made)).to.equal('{"__proto__":7,"a":true}');
      const merged = render('${merge(`{"n": 7, "m": 1}`, params.payload)}', values);
      expect(JSON.stringify(merged)).to.equal('{"n":8,"m":1,"__proto__":{"polluted":1}}');
      expect(merged).to.not.have.property('polluted');
    });

    it('keeps a key __proto__ as an own property', () => {
      const value = render(JSON.parse('{"__proto__": {"polluted": "${params.n}"}}') as JsonValue, {
        params,
      });
      expect(JSON.stringify(value)).to.equal('{"__proto__":{"polluted":7}}');
      expect(({} as Record<string, unknown>)['polluted']).to.equal(undefined);
    });
  });

  describe('that needs too much work', () => {
    const list = Array.from({ length: 2000 }, (_, index) => index);
    const many = Array.from({ length: 20_000 }, (_, index) => `text ${index}`);
    const some = many.map((name) => ({ name }));
    const same = many.map((name) => ({ name }));
    const doubled = new Array<string>(40).fill('[@, @]').join(' | ');
    const cases: readonly (readonly [what: string, text: string])[] = [
      ['nested projections', '${params.list[*].[$.params.list[*].[$.params.list[*].[@]]]}'],
      ['nested maps', '${map(&length(map(&length(list[*].[@]), inner)), params.nested)}'],
      ['padding', "${pad_left('x', `300000000`)}"],
      ['all read for each', '${params.many[?max($.params.many) == @]}'],
      ['all sorted for each', '${params.many[?sort($.params.many)[0] == @]}'],
      ['large values compared for each', '${params.many[?$.params.some == $.params.same]}'],
      ['a large value compared with each small one', '${params.some[?@ == $.params.object]}'],
      ['long strings sorted for each', '${params.many[?sort($.params.texts)[1] == @]}'],
      [
        'long strings sorted by themselves for each',
        '${params.many[?sort_by($.params.texts, &@)[1] == @]}',
      ],
      ['a large object as condition for each', '${params.many[?$.params.object]}'],
      ['a large object negated for each', '${params.many[?!$.params.object || `false`]}'],
      ['a long string sliced for each', '${params.many[?$.params.long[0:1] == @]}'],
      [
        'a missing part searched from the end',
        '${params.list[?find_last($.params.long, $.params.tail)]}',
      ],
      ['a value doubled again and again', `\${${doubled}}`],
      ['a doubled value as a string', `\${${doubled} | to_string(@)}`],
      ['a large value serialized for each', '${params.many[?to_string([$.params.some]) == @]}'],
      ['a long string repeated', '${params.long}'.repeat(100)],
    ];
    const object = Object.fromEntries(many.map((name, i) => [name, i]));
    const long = 'a'.repeat(200_000);
    const texts = [`${long}x`, `${long}y`];
    const tail = `${'a'.repeat(2000)}b`;
    const inner = many.slice(0, 200).map(() => ({ list }));
    const nested = inner.map(() => ({ inner }));
    const params = { nested, list, many, some, same, object, long, texts, tail };
    for (const [what, text] of cases) {
      it(`fails soon: ${what}`, async () => {
        const spent = await cpuMs(() =>
          expect(() => render(text, { params })).to.throw(PipelineError),
        );
        expect(spent).to.be.lessThan(5000);
      });
    }

    it('fails soon: a hundred affordable expressions in one value', async () => {
      const numbers = new Array<number>(100_000).fill(1);
      const scope = { params: numbers };
      expect(render('${length(params[*].[@])}', scope)).to.equal(100_000);
      const many = new Array<string>(100).fill('${length(params[*].[@])}');
      const spent = await cpuMs(() =>
        expect(() => render(many, scope)).to.throw(PipelineError, 'too many steps'),
      );
      expect(spent).to.be.lessThan(5000);
      expect(render('${length(params[*].[@])}', scope)).to.equal(100_000);
    });

    it('unless it reads a large value only once', () => {
      const text = "${length(sort_by(params.some, &name)[?name != 'text 7'])}";
      expect(render(text, { params })).to.equal(19_999);
      expect(render('${params.some == params.same}', { params })).to.equal(true);
      expect(render('${max(params.many)}', { params })).to.equal('text 9999');
      expect(render('${length(merge(params.object, params.object))}', { params })).to.equal(20_000);
      const numbers = Array.from({ length: 200_000 }, (_, i) => (i * 7919) % 200_003);
      expect(render('${sort(params)[1]}', { params: numbers })).to.equal(1);
      expect(render('${max(params)}', { params: numbers })).to.equal(200_002);
      expect(render('${reverse(params)}', { params: `x${long}` })).to.equal(`${long}x`);
    });

    it('trims long strings in linear time', async () => {
      const text = `${' '.repeat(200_000)}x${' '.repeat(200_000)}`;
      const spent = await cpuMs(() =>
        expect(render('${trim(params.text)}', { params: { text } })).to.equal('x'),
      );
      expect(spent).to.be.lessThan(5000);
    });

    it('splits a string full of unclosed expressions in linear time', async () => {
      const text = '${'.repeat(100_000);
      const spent = await cpuMs(() => expect(render(text)).to.equal(text));
      expect(spent).to.be.lessThan(5000);
    });
  });
});
