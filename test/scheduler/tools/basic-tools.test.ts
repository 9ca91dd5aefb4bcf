import { expect } from 'chai';
import { toIso } from '../../../domain/clock.ts';
import { execute } from '../pipeline/pipeline-execution-harness.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { basicTools } from '../../../scheduler/tools/basic-tools.ts';
import { ToolRegistry } from '../../../scheduler/tools/registry.ts';

/** The result of a single step, or how it failed. */
async function run(uses: string, args?: unknown): Promise<unknown> {
  const step = args === undefined ? { uses } : { uses, with: args };
  const { result, output } = await execute({ pipeline: [step] });
  if (result.kind === 'failed') return { error: result.error, retryable: result.retryable };
  return (output['steps'] as Record<string, unknown>)['step_0'];
}

describe('the tool echo', () => {
  for (const args of [{ a: [1, null] }, [1], 'text', 5, false, null]) {
    it(`returns ${JSON.stringify(args)}`, async () => {
      expect(await run('echo', args)).to.deep.equal(args);
    });
  }

  it('returns an empty object for nothing', async () => {
    expect(await run('echo')).to.deep.equal({});
  });
});

describe('the tool log', () => {
  it('takes any message; objects become JSON', async () => {
    const { ends } = await execute({ pipeline: [{ uses: 'log', with: { message: { a: 1 } } }] });
    expect(ends[0]?.result).to.deep.equal({ logged: true });
    expect(ends[0]?.log[0]).to.include({ level: 'info', message: '{"a":1}' });
  });

  it('rejects other levels, and a missing message', async () => {
    expect(await run('log', { message: 'x', level: 'loud' })).to.have.property('retryable', false);
    expect(await run('log', {})).to.have.property('retryable', false);
  });
});

describe('the tool sleep', () => {
  const until = (instant: string): Promise<unknown> => run('sleep', { until: instant });

  it('suspends its step until its time, by the clock', async () => {
    const clock = new VirtualClock();
    const { result, records } = await execute({
      clock,
      pipeline: [{ uses: 'sleep', with: { seconds: 2.5 } }],
    });
    expect(result.kind).to.equal('suspended');
    const [suspended] = records;
    expect(suspended?.data).to.deep.include({ waits_for: { kind: 'timer', seconds: 2.5 } });
    expect(suspended?.data).to.have.property('until', toIso(clock.now() + 2500));
    expect(clock.pending).to.equal(0);
  });

  it('continues at once after zero seconds, or for an instant that has passed', async () => {
    expect(await run('sleep', { seconds: 0 })).to.deep.equal({ slept_seconds: 0 });
    expect(await until('2001-01-01T00:00:00Z')).to.deep.equal({ slept_seconds: 0 });
  });

  it('rejects an instant that it cannot read, or beyond a year', async () => {
    expect(await until('soon')).to.have.property('retryable', false);
    expect(await until('2999-01-01T00:00:00Z')).to.have.property('retryable', false);
  });

  for (const seconds of [-1, 366 * 86_400 + 1, '5', null]) {
    it(`rejects ${JSON.stringify(seconds)} seconds`, async () => {
      expect(await run('sleep', { seconds })).to.have.property('retryable', false);
    });
  }
});

describe('the tool fail', () => {
  it('fails with the message, and is retried unless it says otherwise', async () => {
    expect(await run('fail', { message: 'm' })).to.deep.equal({ error: 'm', retryable: true });
    expect(await run('fail', { message: 'm', retryable: false })).to.deep.equal({
      error: 'm',
      retryable: false,
    });
  });
});

describe('the tool transform', () => {
  it('returns the value of the expression for its input', async () => {
    const input = {
      people: [
        { n: 'a', age: 20 },
        { n: 'b', age: 10 },
      ],
    };
    const expression = 'people[?age > `15`].{name: upper(n)}';
    expect(await run('transform', { expression, input })).to.deep.equal([{ name: 'A' }]);
  });

  it('returns null for a missing value', async () => {
    expect(await run('transform', { expression: 'a.b', input: {} })).to.equal(null);
  });

  for (const [what, expression] of [
    ['broken, and cut where a secret stands', `${' '.repeat(195)}${'${params.KEY}'} [`],
    ['broken at a part of a secret', '${params.KEY}'],
    ['failing at a function that is a part of a secret', '${params.CALL}'],
  ] as const) {
    it(`shows no part of a secret in an expression that is ${what}`, async () => {
      const secrets = { KEY: 'open sesame', CALL: 'sesame()' };
      const pipeline = [{ uses: 'transform', with: { expression, input: {} } }];
      const { result } = await execute({ secrets, params: secrets, pipeline });
      expect(result)
        .to.have.property('error')
        .that.matches(/^the expression ".*" (is invalid|failed)$/)
        .and.does.not.match(/open|sesame/);
    });
  }
});

describe('the registry of tools', () => {
  it('lists tools by name, finds them, and knows their schemas', () => {
    const registry = new ToolRegistry();
    for (const tool of basicTools) registry.register(tool);
    const names = ['echo', 'fail', 'log', 'transform'];
    expect(
      registry
        .of('default')
        .list()
        .map(({ name }) => name),
    ).to.deep.equal(names);
    expect(registry.of('default').find('echo')?.tool?.description).to.be.a('string');
    expect(registry.of('default').schemaOf('log')).to.have.nested.property('properties.message');
    expect(registry.of('default').schemaOf('nobody')).to.equal(undefined);
  });

  it('rejects a taken name, and an invalid schema', () => {
    const registry = new ToolRegistry();
    const tool = { name: 'x.y', description: '', schema: {}, run: () => 1 };
    registry.register(tool);
    expect(() => registry.register(tool)).to.throw(/x\.y is already/);
    const schema = { type: 'nonsense' };
    expect(() => registry.register({ ...tool, name: 'x.z', schema })).to.throw();
    registry.unregister('x.y');
    expect(registry.of('default').find('x.y')?.tool).to.equal(undefined);
  });

  it('accepts schemas of any dialect, and two of the same $id', () => {
    const registry = new ToolRegistry();
    const base = { description: '', run: () => 1 };
    const dialects = [
      'http://json-schema.org/draft-07/schema#',
      'https://json-schema.org/draft/2020-12/schema',
    ];
    for (const [index, $schema] of dialects.entries()) {
      const schema = { $schema, $id: 'same', type: 'object', required: ['a'] };
      registry.register({ ...base, name: `t${index}`, schema });
      expect(registry.of('default').find(`t${index}`)?.check({})).to.have.lengthOf(1);
    }
  });
});
