import { expect } from 'chai';
import type { StepEnd } from '../../../domain/events/catalogue.ts';
import type { Tool } from '../../../scheduler/tools/tool.ts';
import { execute } from './pipeline-execution-harness.ts';
import { cpuMs } from '../../support/cpu-time.ts';

describe('a run with large results', () => {
  const KIB = 1024;
  const large = 'x'.repeat(200 * KIB);
  /** A tool that both logs and returns its arguments. */
  const talk: Tool['run'] = (text, { log }) => {
    const said = JSON.stringify(text).slice(0, 1000);
    for (let line = 0; line < 40; line += 1) log('info', said);
    return text;
  };
  const bytesOf = (ends: readonly StepEnd[]): number => JSON.stringify(ends).length;

  it('keeps 16 MiB, and records the size of the rest', async () => {
    const pipeline = [
      { uses: 'talk', for_each: new Array<string>(200).fill('${params.large}'), with: '${item}' },
      { id: 'little', uses: 'echo', with: '${length(steps.step_0)}' },
      { id: 'seen', uses: 'echo', with: '${steps.step_0[199]}' },
    ];
    const went = await execute({ pipeline, params: { large }, tools: { talk } });
    const of = (step: string): StepEnd | undefined => went.ends.find((end) => end.step === step);
    expect(bytesOf(went.ends)).to.be.within(16_000 * KIB, 17_000 * KIB);
    expect(of('step_0[0]')?.result).to.equal(large);
    const cut = { truncated: true, size_bytes: 200 * KIB + 2 };
    expect(of('step_0[199]')?.result).to.deep.equal(cut);
    expect(of('step_0[199]')?.log.map(({ message }) => message)).to.deep.equal([
      'log omitted: the run has reached its size limit',
    ]);
    expect([of('little')?.result, of('seen')?.result]).to.deep.equal([200, cut]);
  });

  it('counts the results in its stream', async () => {
    const items = new Array<string>(100).fill('${params.large}');
    const pipeline = [
      { uses: 'echo', for_each: items, with: '${item}' },
      { uses: 'echo', with: '${params.large}' },
    ];
    const first = await execute({ pipeline: pipeline.slice(0, 1), params: { large } });
    const { ends } = await execute({ pipeline, params: { large }, finished: first.ends });
    expect(ends.map(({ result }) => result)).to.deep.equal([
      { truncated: true, size_bytes: 200 * KIB + 2 },
    ]);
  });

  it('keeps the beginnings of ignored errors', async () => {
    const step = { uses: 'fail', with: { message: '${params.large}' }, on_error: 'continue' };
    const pipeline = [{ ...step, for_each: new Array<number>(1500).fill(0) }];
    const { ends } = await execute({ pipeline, params: { large } });
    const errors = ends.flatMap(({ error }) => (error === null ? [] : [error]));
    expect([errors[0]?.length, errors.at(-1)?.length]).to.deep.equal([4000, 250]);
  });
});

describe('the arguments of a step', () => {
  it('fail it when they are larger than all results of a run may be', async () => {
    const params = { large: 'x'.repeat(200 * 1024) };
    const steps = [80, 90].map((count) => ({
      uses: 'echo',
      with: new Array<string>(count).fill('${params.large}'),
      on_error: 'continue',
    }));
    const { ends } = await execute({ pipeline: steps, params });
    expect(ends.map(({ error }) => error)).to.deep.equal([
      null,
      'the arguments for echo are too large',
    ]);
  });
});

describe('a deeply nested result', () => {
  const nested = (levels: number): unknown => JSON.parse('['.repeat(levels) + ']'.repeat(levels));
  const pipeline = [{ id: 'deep', uses: 'tool' }];

  it('is kept up to 500 levels', async () => {
    const { output } = await execute({ pipeline, tools: { tool: () => nested(500) } });
    expect(output['steps']).to.deep.equal({ deep: nested(500) });
  });

  for (const levels of [501, 5_000, 100_000]) {
    it(`fails its step with ${levels} levels, also when secrets are masked`, async () => {
      for (const secrets of [{}, { TOKEN: 'hidden' }]) {
        const withSecret = { id: 'deep', uses: 'tool', with: { a: '${secrets.TOKEN}' } };
        const { result } = await execute({
          pipeline: 'TOKEN' in secrets ? [withSecret] : pipeline,
          tools: { tool: () => nested(levels) },
          secrets,
        });
        expect(result).to.include({ kind: 'failed', retryable: false });
        expect(result).to.have.property('error').that.includes('deeper than 500 levels');
      }
    });
  }
});

describe('a result with very many items', () => {
  const sparse = (): unknown[] => {
    const list: unknown[] = [];
    list[4_000_000_000] = 1;
    return list;
  };
  const doubled = (): unknown => {
    let value: unknown = [1];
    for (let level = 0; level < 40; level += 1) value = { one: value, other: value };
    return value;
  };
  const missing = new Array<unknown>(1_000_000);
  const many = (): unknown => Array.from({ length: 2000 }, () => missing);
  for (const [what, value, least] of [
    ['most of them missing', sparse, 8_000_000_002],
    ['the same in many places', doubled, 4_000_000],
    ['missing in many lists', many, 4_000_000],
  ] as const) {
    for (const secrets of [{}, { TOKEN: 'hidden' }]) {
      it(`is cut early: ${what}, ${'TOKEN' in secrets ? 'with' : 'without'} secrets`, async () => {
        const step = { id: 'a', uses: 'tool', if: 'params' };
        const tool: Tool['run'] = (_args, call) => {
          call.log('info', 'm', value());
          return value();
        };
        const spent = await cpuMs(async () => {
          const { ends } = await execute({
            pipeline: [step],
            params: { any: 1 },
            tools: { tool },
            secrets,
          });
          for (const cut of [ends[0]?.result, ends[0]?.log[0]?.data]) {
            expect(cut).to.have.property('truncated', true);
            expect(cut).to.have.property('size_bytes').that.is.at.least(least);
          }
        });
        expect(spent).to.be.lessThan(5000);
      });
    }
  }
});
