import { expect } from 'chai';
import { RefusalError } from '../../../domain/errors.ts';
import type { JsonObject } from '../../../domain/json.ts';
import { checkPayload } from '../../../domain/pipeline/check-payload.ts';
import { parsePayload } from '../../../domain/pipeline/parse.ts';

/** A number, or a string for a class of numbers. */
const one = {
  anyOf: [
    { type: 'integer', minimum: 100 },
    { type: 'string', pattern: '^[1-5]xx$' },
  ],
};
const schemas: Readonly<Record<string, object>> = {
  echo: {},
  transform: {},
  sleep: {
    type: 'object',
    properties: { seconds: { type: 'number', maximum: 86_400 } },
    required: ['seconds'],
    additionalProperties: false,
  },
  choose: {
    type: 'object',
    properties: { what: { enum: ['a', 'b'] }, list: { type: 'array', items: { type: 'number' } } },
  },
  expect: {
    type: 'object',
    properties: {
      status: { anyOf: [one, { type: 'array', minItems: 1, items: one }] },
      mode: { anyOf: [{ const: 'fast' }, { const: 'slow' }, { type: 'null' }] },
    },
  },
};
const tools = {
  schemaOf: (name: string): object | undefined => schemas[name],
  isOwn: () => true,
  names: () => Object.keys(schemas),
};

const check = (pipeline: unknown, more: object = {}): ReturnType<typeof checkPayload> =>
  checkPayload({ pipeline, ...more } as unknown as JsonObject, tools);
const fields = (pipeline: unknown, more: object = {}): readonly string[] =>
  check(pipeline, more).issues.map(({ field }) => field);

describe('a payload', () => {
  it('may have an empty pipeline', () => {
    expect(check([])).to.deep.equal({ issues: [], warnings: [] });
  });

  it('must have an array pipeline', () => {
    expect(checkPayload({}, tools).issues[0]?.field).to.equal('payload.pipeline');
    expect(fields({})).to.deep.equal(['payload.pipeline']);
  });

  it('must have an object as params, if any', () => {
    expect(fields([], { params: [] })).to.deep.equal(['payload.params']);
  });

  it('gets a warning for an unknown field', () => {
    const { issues, warnings } = check([], { pipelines: [] });
    expect(issues).to.deep.equal([]);
    expect(warnings[0]).to.match(/^payload\.pipelines: is ignored/);
  });

  describe('reports each fault at its path', () => {
    const cases: readonly (readonly [what: string, step: unknown, field: string])[] = [
      ['a step that is not an object', 'echo', ''],
      ['no tool', {}, '.uses'],
      ['an empty tool', { uses: '' }, '.uses'],
      ['a tool that is not a string', { uses: 5 }, '.uses'],
      ['an unknown field', { uses: 'echo', wiht: {} }, '.wiht'],
      ['an id with brackets', { uses: 'echo', id: 'a[0]' }, '.id'],
      ['a negative timeout', { uses: 'echo', timeout_seconds: -1 }, '.timeout_seconds'],
      ['retries that are not a number', { uses: 'echo', max_retries: '3' }, '.max_retries'],
      ['another on_error', { uses: 'echo', on_error: 'ignore' }, '.on_error'],
      ['a for_each that is an object', { uses: 'echo', for_each: {} }, '.for_each'],
      ['an empty group', { parallel: [] }, '.parallel'],
      ['a tool beside a group', { parallel: [{ uses: 'echo' }], uses: 'echo' }, '.uses'],
      ['a fault in a group', { parallel: [{ uses: 'echo' }, {}] }, '.parallel.1.uses'],
      ['a group in a group', { parallel: [{ parallel: [] }] }, '.parallel.0.parallel'],
    ];
    for (const [what, step, field] of cases) {
      it(what, () => {
        expect(fields([{ uses: 'echo' }, step])).to.include(`payload.pipeline.1${field}`);
      });
    }
  });

  it('reports the allowed types of a for_each', () => {
    expect(check([{ uses: 'echo', for_each: 5 }]).issues).to.deep.equal([
      { field: 'payload.pipeline.0.for_each', issue: 'must be string or array' },
    ]);
  });

  it('reports limits in words', () => {
    const { issues } = check([{ uses: 'echo', max_retries: 51, id: 'x'.repeat(101) }]);
    expect(issues).to.have.deep.members([
      { field: 'payload.pipeline.0.max_retries', issue: 'must be at most 50' },
      { field: 'payload.pipeline.0.id', issue: 'must have at most 100 characters' },
    ]);
  });

  it('lists all faults', () => {
    expect(fields([{}, { uses: 'echo', x: 1 }])).to.deep.equal([
      'payload.pipeline.0.uses',
      'payload.pipeline.1.x',
    ]);
  });

  describe('with ids', () => {
    it('refuses one that occurs twice, even within a group', () => {
      expect(
        fields([
          { uses: 'echo', id: 'a' },
          { uses: 'echo', id: 'a' },
        ]),
      ).to.deep.equal(['payload.pipeline.1.id']);
      expect(
        fields([{ uses: 'echo', id: 'a' }, { parallel: [{ uses: 'echo', id: 'a' }] }]),
      ).to.deep.equal(['payload.pipeline.1.parallel.0.id']);
    });

    it("refuses another step's default id", () => {
      expect(fields([{ uses: 'echo', id: 'step_1' }, { uses: 'echo' }])).to.deep.equal([
        'payload.pipeline.1',
      ]);
    });
  });

  describe('whose tool has a schema', () => {
    it('is validated by it', () => {
      expect(fields([{ uses: 'sleep', with: { seconds: 'x' } }])).to.deep.equal([
        'payload.pipeline.0.with.seconds',
      ]);
      expect(fields([{ uses: 'sleep' }])).to.deep.equal(['payload.pipeline.0.with.seconds']);
      expect(fields([{ uses: 'sleep', with: { seconds: 1, more: 1 } }])).to.deep.equal([
        'payload.pipeline.0.with.more',
      ]);
    });

    it('is not validated where it has a template', () => {
      expect(fields([{ uses: 'sleep', with: { seconds: '${params.s}' } }])).to.deep.equal([]);
      expect(fields([{ uses: 'sleep', with: '${params}' }])).to.deep.equal([]);
      expect(
        fields([{ uses: 'choose', with: { what: '${params.s}', list: [1, '${x}'] } }]),
      ).to.deep.equal([]);
    });

    it('accepts a template within a list where a single value is allowed too', () => {
      expect(fields([{ uses: 'expect', with: { status: ['${params.s}'] } }])).to.deep.equal([]);
      expect(fields([{ uses: 'expect', with: { status: [404, '${params.s}'] } }])).to.deep.equal(
        [],
      );
    });

    describe('with alternatives reports one fault', () => {
      const cases: readonly (readonly [
        what: string,
        arguments: object,
        field: string,
        issue: string,
      ])[] = [
        ['of the intended alternative', { status: 99 }, 'status', 'must be at least 100'],
        ['of an item', { status: [200, 99] }, 'status.1', 'must be at least 100'],
        ['of the list', { status: [] }, 'status', 'must have at least 1 item'],
        ['of all alternatives', { status: true }, 'status', 'must be integer, string or array'],
        ['of an item that is neither', { status: [{}] }, 'status.0', 'must be integer or string'],
        ['of names', { mode: 'slo' }, 'mode', 'must be null or one of fast, slow'],
      ];
      for (const [what, given, field, issue] of cases) {
        it(what, () => {
          expect(check([{ uses: 'expect', with: given }]).issues).to.deep.equal([
            { field: `payload.pipeline.0.with.${field}`, issue },
          ]);
        });
      }

      it('of each item, however many there are', () => {
        const status = Array.from({ length: 120_000 }, () => 7);
        expect(check([{ uses: 'expect', with: { status } }]).issues).to.have.lengthOf(120_000);
      });
    });

    it('is validated next to a template', () => {
      expect(
        fields([{ uses: 'choose', with: { what: 'c', list: ['${item}', 'no'] } }]),
      ).to.have.members(['payload.pipeline.0.with.what', 'payload.pipeline.0.with.list.1']);
      expect(fields([{ uses: 'sleep', with: { secs: '${params.s}' } }])).to.include(
        'payload.pipeline.0.with.seconds',
      );
    });
  });

  describe('is accepted with a warning', () => {
    const cases: readonly (readonly [what: string, step: unknown, says: RegExp])[] = [
      ['for an unknown tool', { uses: 'acme.ship' }, /0\.uses: no tool named acme\.ship/],
      ['for an invalid expression', { uses: 'echo', with: { a: '${b(}' } }, /0\.with\.a: .*"b\("/],
      ['for an invalid condition', { uses: 'echo', if: 'a ==' }, /0\.if: /],
      ['for an invalid for_each', { uses: 'echo', for_each: '${[}' }, /0\.for_each: /],
      ['for a misleading negation', { uses: 'echo', if: '!params.x' }, /0\.if: .*!\(/],
      ['for an unknown name', { uses: 'echo', with: '${parms.x}' }, /parms is not defined/],
      [
        'for an invalid expression as an argument',
        { uses: 'transform', with: { expression: 'a[', input: '${item}' } },
        /0\.with\.expression: .*"a\["/,
      ],
    ];
    it('unless the expression of a tool has a template', () => {
      const expression = '${params.a}[';
      expect(check([{ uses: 'transform', with: { expression, input: 1 } }]).warnings).to.be.empty;
    });
    for (const [what, step, says] of cases) {
      it(what, () => {
        const { issues, warnings } = check([step]);
        expect(issues).to.deep.equal([]);
        expect(warnings).to.have.lengthOf(1);
        expect(warnings[0]).to.match(says);
      });
    }
  });
});

describe('a parsed payload', () => {
  it('has an id for each step, numbered from 0, even in groups', () => {
    const { pipeline } = parsePayload({
      pipeline: [
        { uses: 'echo' },
        { parallel: [{ uses: 'echo' }, { uses: 'echo', id: 'b' }] },
        { uses: 'echo', id: 'last' },
      ],
    });
    const ids = pipeline.flatMap((step) =>
      'parallel' in step ? [step.id, ...step.parallel.map(({ id }) => id)] : [step.id],
    );
    expect(ids).to.deep.equal(['step_0', 'step_1', 'step_1_0', 'b', 'last']);
  });

  it('is refused with its first fault', () => {
    expect(() => parsePayload({ pipeline: [{}] })).to.throw(
      RefusalError,
      'payload.pipeline.0.uses',
    );
  });
});
