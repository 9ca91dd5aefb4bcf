import { expect } from 'chai';
import type { StepEnd } from '../../../domain/events/catalogue.ts';
import type { JsonObject } from '../../../domain/json.ts';
import { compilePipeline } from '../../../domain/pipeline/compile.ts';
import { outputOf } from '../../../domain/pipeline/output.ts';
import { finishedSteps, storedOutput } from '../../../domain/pipeline/progress.ts';
import { truncateTo, jsonBytes, toPlainJson } from '../../../domain/pipeline/json-size.ts';

const at = '2026-01-01T00:00:00.000Z';

function end(step: string, result: unknown, more: Partial<StepEnd> = {}): StepEnd {
  const times = { started_at: at, finished_at: at, attempt: 1, log: [] };
  return { step, status: 'succeeded', result, error: null, ...times, ...more };
}
const failed = (step: string): StepEnd => end(step, null, { status: 'failed', error: 'no luck' });
const skipped = (step: string): StepEnd => end(step, null, { status: 'skipped' });

/** The output folded from the events of the run's stream. */
function fold(
  payload: JsonObject,
  ends: readonly StepEnd[],
  failedStep: string | null = null,
): JsonObject {
  const pipeline = compilePipeline(payload);
  const byName = new Map(ends.map((each) => [each.step, each]));
  const stored = storedOutput(pipeline, byName, failedStep);
  return outputOf(ends, JSON.parse(JSON.stringify(stored)) as JsonObject);
}

describe('the output of a run', () => {
  it('has results by save_as, else by id, and a summary', () => {
    const payload = {
      pipeline: [
        { uses: 'a', save_as: 'first' },
        { uses: 'b', id: 'second' },
      ],
    };
    expect(fold(payload, [end('step_0', 1), end('second', { x: 2 })])).to.deep.equal({
      steps: { first: 1, second: { x: 2 } },
      summary: { total_steps: 2, executed_steps: 2, skipped_steps: 0 },
    });
  });

  it('of an empty pipeline is empty', () => {
    expect(fold({ pipeline: [] }, [])).to.deep.equal({
      steps: {},
      summary: { total_steps: 0, executed_steps: 0, skipped_steps: 0 },
    });
  });

  it('omits skipped steps, and has the error of steps that the run continued after', () => {
    const payload = {
      pipeline: [{ uses: 'a' }, { uses: 'b', on_error: 'continue' }, { uses: 'c' }],
    };
    expect(fold(payload, [skipped('step_0'), failed('step_1'), end('step_2', 3)])).to.deep.equal({
      steps: { step_1: { error: 'no luck' }, step_2: 3 },
      summary: { total_steps: 3, executed_steps: 2, skipped_steps: 1 },
    });
  });

  it('names the step that failed', () => {
    const payload = { pipeline: [{ uses: 'a' }, { uses: 'b' }, { uses: 'c' }] };
    expect(fold(payload, [end('step_0', 1), failed('step_1')], 'step_1')).to.deep.equal({
      steps: { step_0: 1 },
      summary: { total_steps: 3, executed_steps: 2, skipped_steps: 0, failed_step: 'step_1' },
    });
  });

  it('has the results of the items as an array', () => {
    const payload = { pipeline: [{ uses: 'a', id: 'x', for_each: 'params.l', save_as: 'all' }] };
    const ends = [end('x[0]', 'a'), skipped('x[1]'), end('x[2]', 'c'), end('x', null)];
    expect(fold(payload, ends)['steps']).to.deep.equal({ all: ['a', null, 'c'] });
    expect(fold(payload, [end('x', [])])['steps']).to.deep.equal({ all: [] });
  });

  it('has the results of a group individually, and together under its save_as', () => {
    const payload = {
      pipeline: [
        {
          id: 'g',
          save_as: 'both',
          parallel: [
            { uses: 'a', id: 'l' },
            { uses: 'a', id: 'r' },
          ],
        },
      ],
    };
    const output = fold(payload, [end('l', 1), end('r', 2), end('g', null)]);
    expect(output).to.deep.equal({
      steps: { l: 1, r: 2, both: { l: 1, r: 2 } },
      summary: { total_steps: 2, executed_steps: 2, skipped_steps: 0 },
    });
  });

  it('counts all steps of a skipped group as skipped', () => {
    const payload = { pipeline: [{ parallel: [{ uses: 'a' }, { uses: 'a' }], if: 'params.x' }] };
    expect(fold(payload, [skipped('step_0')])).to.deep.equal({
      steps: {},
      summary: { total_steps: 2, executed_steps: 0, skipped_steps: 2 },
    });
  });

  it('uses the last end of a retried step', () => {
    const payload = { pipeline: [{ uses: 'a' }] };
    expect(fold(payload, [failed('step_0'), end('step_0', 'ok')])['steps']).to.deep.equal({
      step_0: 'ok',
    });
  });

  it('is available before the run has ended', () => {
    expect(outputOf([end('a', 1), end('b[0]', 2)], {})).to.deep.equal({
      steps: { a: 1, b: [2] },
      summary: { total_steps: 2, executed_steps: 2, skipped_steps: 0 },
    });
  });

  it('supports any step name', () => {
    const payload = JSON.parse('{"pipeline":[{"uses":"a","save_as":"__proto__"}]}') as JsonObject;
    const output = fold(payload, [end('step_0', { a: 1 })]);
    expect(JSON.stringify(output['steps'])).to.equal('{"__proto__":{"a":1}}');
  });

  it('over 4 MiB is truncated and marked', () => {
    const pipeline = Array.from({ length: 30 }, () => ({ uses: 'a' }));
    const ends = pipeline.map((_, index) => end(`step_${index}`, 'x'.repeat(200 * 1024)));
    const output = fold({ pipeline }, ends);
    const steps = output['steps'] as JsonObject;
    expect(jsonBytes(output)).to.be.lessThan(4 * 1024 * 1024);
    expect(output['truncated']).to.equal(true);
    expect(steps['step_0']).to.be.a('string');
    expect(steps['step_29']).to.include({ truncated: true, size_bytes: 200 * 1024 + 2 });
  });
});

describe('an output of about 4 MiB', () => {
  const most = 4 * 1024 * 1024;
  const outputs = (count: number, id: (index: number) => string, length: number): JsonObject => {
    const pipeline = Array.from({ length: count }, (_, index) => ({ uses: 'a', id: id(index) }));
    return fold(
      { pipeline },
      pipeline.map((step) => end(step.id, 'x'.repeat(length))),
    );
  };

  it('is complete with long names', () => {
    const output = outputs(1000, (index) => `${'n'.repeat(96)}${1000 + index}`, 3650);
    expect(output).not.to.have.property('truncated');
    expect(Object.values(output['steps'] as JsonObject)).to.deep.equal(
      Array.from({ length: 1000 }, () => 'x'.repeat(3650)),
    );
  });

  const names = (index: number): string => `step_${10 + index}`;
  const little = jsonBytes(outputs(20, names, 1));
  const share = Math.floor((most - little) / 20) + 1;
  for (const [less, length] of [
    [(most - little) % 20, share],
    [500, share - 25],
  ] as const) {
    it(`is complete where ${less} bytes are left`, () => {
      const output = outputs(20, names, length);
      expect(jsonBytes(output)).to.be.within(most - 600, most);
      expect(output).not.to.have.property('truncated');
    });
  }

  it('has a marker for each result that does not fit', () => {
    const output = outputs(3000, names, 5000);
    const steps = output['steps'] as JsonObject;
    expect(jsonBytes(output)).to.be.within(most - 2000, most);
    expect(output['truncated']).to.equal(true);
    expect(Object.keys(steps)).to.have.lengthOf(3000);
    expect(steps['step_10']).to.equal('x'.repeat(5000));
    expect(steps['step_3009']).to.deep.equal({ truncated: true, size_bytes: 5002 });
  });
});

describe('a result', () => {
  const limit = 256 * 1024;
  const cut = (value: unknown): unknown => truncateTo(limit, toPlainJson(value)).value;

  it('within the limit stays unchanged', () => {
    const value = { text: 'ü'.repeat(100_000) };
    expect(cut(value)).to.equal(value);
  });

  const cases: readonly (readonly [what: string, value: unknown])[] = [
    ['text', 'ä'.repeat(300_000)],
    ['text of control characters', '\u0001'.repeat(300_000)],
    ['a list', Array.from({ length: 100_000 }, (_, index) => index)],
    ['a response', { status: 200, headers: {}, body: 'x'.repeat(500_000) }],
    ['many members', Object.fromEntries(Array.from({ length: 90_000 }, (_, i) => [`k${i}`, i]))],
  ];
  for (const [what, value] of cases) {
    it(`over the limit is truncated and marked: ${what}`, () => {
      const short = cut(value);
      expect(jsonBytes(short)).to.be.at.most(limit);
      expect(JSON.stringify(short).slice(-200) + JSON.stringify(short).slice(0, 200)).to.match(
        /"truncated":true|\[cut: \d+ bytes in all\]/,
      );
    });
  }

  it('keeps the small members of an object', () => {
    const short = cut({ status: 200, body: 'x'.repeat(500_000) }) as { body: string };
    expect(short).to.include({ status: 200, truncated: true });
    expect(short.body).to.match(/^x{200000,}… \[cut: 500002 bytes in all\]$/);
  });

  it('is converted to plain JSON', () => {
    expect(toPlainJson({ at: new Date(0), no: undefined, n: NaN }).value).to.deep.equal({
      at: '1970-01-01T00:00:00.000Z',
      n: null,
    });
    expect(toPlainJson(undefined).value).to.equal(null);
  });

  it('that JSON cannot represent is refused', () => {
    const cycle: Record<string, unknown> = {};
    cycle['self'] = cycle;
    expect(() => toPlainJson(cycle)).to.throw(TypeError);
    expect(() => toPlainJson({ big: 1n })).to.throw(TypeError);
  });
});

describe('the steps of a run', () => {
  const pipeline = compilePipeline({
    pipeline: [
      { uses: 'a', id: 'one' },
      { uses: 'a', id: 'two', on_error: 'continue' },
      { uses: 'a', id: 'many', for_each: 'params.l' },
      {
        id: 'g',
        parallel: [
          { uses: 'a', id: 'left' },
          { uses: 'a', id: 'right' },
        ],
      },
    ],
  });

  it('are all unfinished at first', () => {
    expect(finishedSteps(pipeline, []).size).to.equal(0);
  });

  it('that succeeded, were skipped or were continued after are finished', () => {
    const ends = [end('one', 1), failed('two'), end('many[0]', 1), end('left', 1)];
    expect([...finishedSteps(pipeline, ends).keys()]).to.deep.equal([
      'one',
      'two',
      'many[0]',
      'left',
    ]);
  });

  it('that failed are unfinished', () => {
    expect(finishedSteps(pipeline, [failed('one')]).has('one')).to.equal(false);
  });

  it('of a finished group are finished too', () => {
    const ends = [end('one', 1), skipped('two'), end('many', []), skipped('g')];
    expect([...finishedSteps(pipeline, ends).keys()]).to.deep.equal(['one', 'two', 'many', 'g']);
  });
});
