import { expect } from 'chai';
import type { StepEnd } from '../../../domain/events/catalogue.ts';
import type { Tool } from '../../../scheduler/tools/tool.ts';
import { deferred } from '../../support/signals.ts';
import { settle, VirtualClock } from '../../support/virtual-clock.ts';
import { execute, recorder } from './pipeline-execution-harness.ts';

const statuses = (ends: readonly StepEnd[]): Record<string, string> =>
  Object.fromEntries(ends.map(({ step, status }) => [step, status]));

describe('a step with for_each', () => {
  it('runs for each item in turn and gives an array', async () => {
    const { ends, output } = await execute({
      params: { names: ['a', 'b'] },
      pipeline: [
        { uses: 'echo', with: '${index}${item}', for_each: '${params.names}', save_as: 'all' },
        { uses: 'echo', with: '${steps.all[1]} of ${length(steps.step_0)}' },
      ],
    });
    expect(ends.map(({ step }) => step)).to.deep.equal([
      'step_0[0]',
      'step_0[1]',
      'step_0',
      'step_1',
    ]);
    expect(output).to.deep.equal({
      steps: { all: ['0a', '1b'], step_1: '1b of 2' },
      summary: { total_steps: 2, executed_steps: 2, skipped_steps: 0 },
    });
  });

  it('takes a bare expression, or an array with templates', async () => {
    const { output } = await execute({
      params: { n: 5 },
      pipeline: [
        { uses: 'echo', with: '${item}', for_each: 'params.* | [0:1]' },
        { uses: 'echo', with: '${item}', for_each: ['${params.n}', 'x'] },
      ],
    });
    expect(output['steps']).to.deep.equal({ step_0: [5], step_1: [5, 'x'] });
  });

  it('gives an empty array for none', async () => {
    const { output } = await execute({
      pipeline: [
        { uses: 'echo', for_each: '`[]`' },
        { uses: 'echo', with: '${steps.step_0}' },
      ],
    });
    expect(output['steps']).to.deep.equal({ step_0: [], step_1: [] });
  });

  it('evaluates a condition once, or per item if it refers to the item', async () => {
    const { output, ends } = await execute({
      params: { l: [1, 2, 3] },
      pipeline: [
        { uses: 'echo', with: '${item}', for_each: 'params.l', if: 'params.none' },
        { uses: 'echo', with: '${item}', for_each: 'params.l', if: 'item != `2`' },
      ],
    });
    expect(output['steps']).to.deep.equal({ step_1: [1, null, 3] });
    expect(statuses(ends)).to.include({ step_0: 'skipped', 'step_1[1]': 'skipped' });
  });

  it('fails with its first failing item', async () => {
    const { result, output } = await execute({
      pipeline: [{ uses: 'fail', with: { message: '${item}' }, for_each: ['a'] }, { uses: 'echo' }],
    });
    expect(result).to.include({ kind: 'failed', step: 'step_0[0]', error: 'a' });
    expect(output['summary']).to.deep.equal({
      total_steps: 2,
      executed_steps: 1,
      skipped_steps: 0,
      failed_step: 'step_0[0]',
    });
  });

  it('continues after failed items with on_error: continue', async () => {
    const { output } = await execute({
      pipeline: [
        {
          uses: 'transform',
          with: { expression: 'abs(@)', input: '${item}' },
          for_each: [-1, 'x', -3],
          on_error: 'continue',
        },
      ],
    });
    const steps = output['steps'] as { step_0: unknown[] };
    expect(steps.step_0[0]).to.equal(1);
    expect(steps.step_0[1]).to.have.property('error');
    expect(steps.step_0[2]).to.equal(3);
  });

  it('records each item before the next starts', async () => {
    const order: string[] = [];
    const tool = recorder((_, call) => order.push(call.step));
    await execute({
      pipeline: [{ uses: 'tool', for_each: [1, 2] }, { uses: 'tool' }],
      tools: { tool: tool.run },
      record: async (steps) => {
        await settle(1);
        order.push(...steps.map(({ step }) => `(${step})`));
      },
    });
    expect(order).to.deep.equal([
      'step_0[0]',
      '(step_0[0])',
      'step_0[1]',
      '(step_0[1])',
      '(step_0)',
      'step_1',
    ]);
  });

  it('rejects more items than a run may have', async () => {
    const { result } = await execute({
      pipeline: [
        { uses: 'many', save_as: 'm' },
        { uses: 'echo', for_each: 'steps.m' },
      ],
      tools: { many: () => Array.from({ length: 10_001 }, () => 0) },
    });
    expect(result).to.include({ kind: 'failed', retryable: false });
  });
});

describe('a run that continues', () => {
  it('does not repeat finished steps, and sees their results', async () => {
    let broken = true;
    const tool = recorder((args) => {
      if (broken && args === 'c') throw new Error('not yet');
      return `did ${String(args)}`;
    });
    const pipeline = [
      { uses: 'tool', with: 'a', save_as: 'first' },
      { uses: 'tool', with: '${item}', id: 'each', for_each: ['b', 'c', 'd'] },
      { uses: 'echo', with: '${steps.first}, ${steps.each}' },
    ];
    const one = await execute({ pipeline, tools: { tool: tool.run } });
    expect(one.result).to.include({ kind: 'failed', step: 'each[1]' });
    broken = false;
    const two = await execute({
      pipeline,
      tools: { tool: tool.run },
      finished: one.ends,
      attempt: 2,
    });
    expect(tool.calls.map(({ args }) => args)).to.deep.equal(['a', 'b', 'c', 'c', 'd']);
    expect(two.output).to.deep.equal({
      steps: {
        first: 'did a',
        each: ['did b', 'did c', 'did d'],
        step_2: 'did a, ["did b","did c","did d"]',
      },
      summary: { total_steps: 3, executed_steps: 3, skipped_steps: 0 },
    });
    expect(two.ends.every(({ attempt }) => attempt === 2)).to.equal(true);
  });

  it('has the same output wherever it was stopped', async () => {
    const pipeline = [
      { uses: 'tool', with: 1 },
      { uses: 'fail', with: { message: 'x' }, on_error: 'continue' },
      { uses: 'tool', with: '${item}', for_each: [1, 2], save_as: 'list' },
      {
        parallel: [
          { uses: 'tool', id: 'l' },
          { uses: 'tool', id: 'r' },
        ],
        save_as: 'both',
      },
      { uses: 'tool', with: '${steps.list[1]} ${steps.both.l}', if: 'steps.step_1.error' },
      { uses: 'echo', if: 'steps.nothing' },
    ];
    const whole = await execute({ pipeline, tools: { tool: recorder().run } });
    expect(whole.result.kind).to.equal('succeeded');
    for (let count = 0; count <= whole.ends.length; count += 1) {
      const tool = recorder();
      const finished = whole.ends.slice(0, count);
      const rest = await execute({ pipeline, finished, tools: { tool: tool.run } });
      expect(rest.output, `after ${count} steps`).to.deep.equal(whole.output);
      const names = [...finished, ...rest.ends].map(({ step }) => step);
      expect(new Set(names).size, `after ${count} steps`).to.equal(names.length);
    }
  });

  it('repeats a failed step', async () => {
    const one = await execute({ pipeline: [{ uses: 'fail', with: { message: 'x' } }] });
    const two = await execute({
      pipeline: [{ uses: 'fail', with: { message: 'x' } }],
      finished: one.ends,
      attempt: 2,
    });
    expect(two.ends).to.have.lengthOf(1);
  });
});

describe('a group of parallel steps', () => {
  /** Answers when the test lets it, by the name in its arguments. */
  function gates(): { readonly run: Tool['run']; readonly open: (name: string) => void } {
    const all = new Map<string, ReturnType<typeof deferred<string>>>();
    const of = (name: string): ReturnType<typeof deferred<string>> => {
      const gate = all.get(name) ?? deferred<string>();
      all.set(name, gate);
      return gate;
    };
    const run: Tool['run'] = (args, { signal }) =>
      Promise.race([
        of(args as string).promise,
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
        }),
      ]);
    return { run, open: (name) => of(name).resolve(name.toUpperCase()) };
  }
  const pair = [
    { uses: 'gate', id: 'l', with: 'a' },
    { uses: 'gate', id: 'r', with: 'b', save_as: 'right' },
  ];

  it('yields the event loop between synchronous steps', async () => {
    const clock = new VirtualClock();
    let turns = 0;
    let over = false;
    const turn = (): void => {
      turns += 1;
      if (!over) setImmediate(turn);
    };
    setImmediate(turn);
    const seen: number[] = [];
    const busy: Omit<Tool, 'name'> = {
      description: '',
      schema: {},
      synchronous: true,
      run: () => {
        clock.jumpTo(clock.now() + 10);
        return seen.push(turns);
      },
    };
    const parallel = Array.from({ length: 5 }, (_, i) => ({ id: `s${i}`, uses: 'busy' }));
    await execute({ clock, pipeline: [{ parallel }], tools: { busy } });
    over = true;
    expect(new Set(seen).size).to.equal(5);
  });

  it('runs them in parallel and waits for all', async () => {
    const gate = gates();
    const running = execute({
      pipeline: [
        { parallel: pair, save_as: 'both' },
        { uses: 'echo', with: '${steps.both.l}${steps.right}${steps.r}${steps.step_0.right}' },
      ],
      tools: { gate: gate.run },
    });
    gate.open('b');
    await settle();
    gate.open('a');
    const { output, ends } = await running;
    expect(output).to.deep.equal({
      steps: { right: 'B', l: 'A', both: { l: 'A', right: 'B' }, step_1: 'ABBB' },
      summary: { total_steps: 3, executed_steps: 3, skipped_steps: 0 },
    });
    expect(ends.map(({ step }) => step)).to.deep.equal(['r', 'l', 'step_0', 'step_1']);
  });

  it('records each as it ends', async () => {
    const gate = gates();
    const recorded: string[] = [];
    const running = execute({
      pipeline: [{ parallel: pair }],
      tools: { gate: gate.run },
      record: async (steps) => {
        await settle(1);
        recorded.push(...steps.map(({ step }) => step));
      },
    });
    gate.open('b');
    await settle();
    expect(recorded).to.deep.equal(['r']);
    gate.open('a');
    const { result } = await running;
    expect(result.steps.map(({ step }) => step)).to.deep.equal(['l', 'step_0']);
  });

  it('stops the others when one fails, and keeps successful results for the retry', async () => {
    const gate = gates();
    const running = execute({
      pipeline: [{ parallel: [...pair, { uses: 'hit', id: 'bad' }] }, { uses: 'echo' }],
      tools: {
        gate: gate.run,
        hit: async () => {
          await settle();
          throw new Error('bad luck');
        },
      },
    });
    gate.open('b');
    const { result, ends } = await running;
    expect(result).to.include({ kind: 'failed', step: 'bad', error: 'bad luck' });
    expect(statuses(ends)).to.deep.equal({ r: 'succeeded', bad: 'failed' });
  });

  it("continues after a failure with the step's on_error: continue", async () => {
    const { result, output } = await execute({
      pipeline: [
        {
          parallel: [
            { uses: 'fail', id: 'f', with: { message: 'm' }, on_error: 'continue' },
            { uses: 'echo', id: 'e', with: 1 },
          ],
        },
      ],
    });
    expect(result.kind).to.equal('succeeded');
    expect(output['steps']).to.deep.equal({ f: { error: 'm' }, e: 1 });
  });

  it('continues after the group with its on_error: continue, also on another worker', async () => {
    const pipeline = [
      {
        on_error: 'continue',
        parallel: [
          { uses: 'fail', id: 'f', with: { message: 'm' } },
          { uses: 'nap', id: 's', with: { seconds: 5 } },
        ],
      },
      { uses: 'echo', with: 'after ${steps.f.error}' },
    ];
    const { result, ends } = await execute({ pipeline });
    expect(result.kind).to.equal('succeeded');
    expect(statuses(ends)).to.deep.equal({ f: 'failed', step_0: 'failed', step_1: 'succeeded' });
    const again = await execute({ pipeline, finished: ends.slice(0, 2) });
    expect(statuses(again.ends)).to.deep.equal({ step_1: 'succeeded' });
  });

  it('may have a common timeout', async () => {
    const clock = new VirtualClock();
    const running = execute({
      clock,
      pipeline: [{ parallel: pair, timeout_seconds: 2 }],
      tools: { gate: gates().run },
    });
    await clock.advance(2000);
    expect((await running).result).to.include({
      kind: 'failed',
      step: 'step_0',
      error: 'timed out after 2 s (timeout_seconds)',
      retryable: true,
    });
    expect(clock.pending).to.equal(0);
  });

  it('is skipped as a whole', async () => {
    const { ends, output } = await execute({ pipeline: [{ parallel: pair, if: 'params.x' }] });
    expect(statuses(ends)).to.deep.equal({ step_0: 'skipped' });
    expect(output['summary']).to.include({ total_steps: 2, skipped_steps: 2 });
  });

  it('stops with the run', async () => {
    const clock = new VirtualClock();
    const controller = new AbortController();
    const running = execute({
      clock,
      pipeline: [{ parallel: pair }],
      signal: controller.signal,
      tools: { gate: gates().run },
    });
    await settle();
    controller.abort(new Error('canceled'));
    expect((await running).result).to.deep.include({ kind: 'aborted', steps: [] });
    expect(clock.pending).to.equal(0);
  });

  it('stops all steps before it rejects with a failed append', async () => {
    const stopped: string[] = [];
    const running = execute({
      pipeline: [{ parallel: [{ uses: 'quick' }, { uses: 'slow' }] }],
      tools: {
        quick: () => Promise.resolve(1),
        slow: (_, { signal }) =>
          new Promise((_resolve, reject) => {
            signal.addEventListener('abort', () => {
              stopped.push('slow');
              reject(signal.reason as Error);
            });
          }),
      },
      record: () => Promise.reject(new Error('fenced')),
    });
    const error = await running.then(
      () => null,
      (reason: unknown) => reason,
    );
    expect(error).to.have.property('message', 'fenced');
    expect(stopped).to.deep.equal(['slow']);
  });
});
