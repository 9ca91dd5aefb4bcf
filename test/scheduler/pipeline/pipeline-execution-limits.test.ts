import { expect } from 'chai';
import type { StepEnd } from '../../../domain/events/catalogue.ts';
import { ToolError, type Tool } from '../../../scheduler/tools/tool.ts';
import { deferred } from '../../support/signals.ts';
import { settle, VirtualClock } from '../../support/virtual-clock.ts';
import { execute, recorder } from './pipeline-execution-harness.ts';

const statuses = (ends: readonly StepEnd[]): Record<string, string> =>
  Object.fromEntries(ends.map(({ step, status }) => [step, status]));

describe('a step with retries', () => {
  const flaky = (failures: number, error: () => Error): ReturnType<typeof recorder> => {
    let left = failures;
    return recorder(() => {
      if (left > 0) {
        left -= 1;
        throw error();
      }
      return 'ok';
    });
  };

  it('is retried after growing pauses', async () => {
    const clock = new VirtualClock();
    const tool = flaky(2, () => new Error('flaky'));
    const running = execute({
      clock,
      pipeline: [{ uses: 'tool', max_retries: 2 }],
      tools: { tool: tool.run },
    });
    await clock.advance(199);
    expect(tool.calls).to.have.lengthOf(1);
    await clock.advance(1);
    expect(tool.calls).to.have.lengthOf(2);
    await clock.advance(400);
    const { output } = await running;
    expect(output['steps']).to.deep.equal({ step_0: 'ok' });
    expect(clock.pending).to.equal(0);
  });

  it('fails when they are used up', async () => {
    const clock = new VirtualClock();
    const tool = flaky(9, () => new Error('flaky'));
    const running = execute({
      clock,
      pipeline: [{ uses: 'tool', max_retries: 2 }],
      tools: { tool: tool.run },
    });
    await clock.advance(60_000);
    const { result } = await running;
    expect(result).to.include({ kind: 'failed', error: 'flaky', retryable: true });
    expect(tool.calls).to.have.lengthOf(3);
  });

  it('also works for a synchronous tool', async () => {
    const clock = new VirtualClock();
    let calls = 0;
    const run = (): number => {
      calls += 1;
      if (calls < 2) throw new Error('flaky');
      return calls;
    };
    const running = execute({
      clock,
      pipeline: [{ uses: 'tool', max_retries: 1 }],
      tools: { tool: { description: '', schema: {}, synchronous: true, run } },
    });
    await clock.advance(1000);
    expect((await running).output['steps']).to.deep.equal({ step_0: 2 });
  });

  it('waits as long as the tool requests', async () => {
    const clock = new VirtualClock();
    const tool = flaky(1, () => new ToolError('busy', { retryable: true, retryAfterMs: 7000 }));
    const running = execute({
      clock,
      pipeline: [{ uses: 'tool', max_retries: 1 }],
      tools: { tool: tool.run },
    });
    await clock.advance(6999);
    expect(tool.calls).to.have.lengthOf(1);
    await clock.advance(1);
    expect((await running).result.kind).to.equal('succeeded');
  });

  it("leaves a long pause to the run's retry", async () => {
    const tool = flaky(
      1,
      () => new ToolError('busy', { retryable: true, retryAfterMs: 3_600_000 }),
    );
    const { result } = await execute({
      pipeline: [{ uses: 'tool', max_retries: 5 }],
      tools: { tool: tool.run },
    });
    expect(result).to.include({ kind: 'failed', retryable: true, retryAfterMs: 3_600_000 });
  });
});

describe('a step that times out', () => {
  const hang: Tool['run'] = (_, { signal }) =>
    new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
    });

  it('is aborted and fails after 30 s', async () => {
    const clock = new VirtualClock();
    const running = execute({ clock, pipeline: [{ uses: 'hang' }], tools: { hang } });
    await clock.advance(29_999);
    expect(clock.pending).to.equal(1);
    await clock.advance(1);
    const { result } = await running;
    expect(result).to.include({ kind: 'failed', step: 'step_0', retryable: true });
    expect(result.kind === 'failed' && result.error).to.equal(
      'timed out after 30 s (timeout_seconds)',
    );
    expect(clock.pending).to.equal(0);
  });

  it('fails once, even if its tool stops later', async () => {
    const clock = new VirtualClock();
    const observed: unknown[] = [];
    const telemetry = { observe: (...given: readonly unknown[]) => void observed.push(given[2]) };
    const running = execute({ clock, pipeline: [{ uses: 'hang' }], tools: { hang }, telemetry });
    await clock.advance(30_000);
    await running;
    await settle();
    expect(observed).to.deep.equal([{ tool: 'hang', outcome: 'failure' }]);
  });

  it('ignores a later error that throws when it is read', async () => {
    const clock = new VirtualClock();
    const late: Tool['run'] = async (_, { signal }) => {
      await new Promise((aborted) => signal.addEventListener('abort', aborted));
      throw Object.defineProperty(new Error('m'), 'message', {
        get: () => {
          throw new Error('no message');
        },
      });
    };
    const unhandled: unknown[] = [];
    const note = (reason: unknown): void => void unhandled.push(reason);
    process.on('unhandledRejection', note);
    try {
      const running = execute({ clock, pipeline: [{ uses: 'late' }], tools: { late } });
      await clock.advance(30_000);
      const { result } = await running;
      await settle();
      expect(result.kind === 'failed' && result.error).to.include('timed out');
      expect(unhandled).to.deep.equal([]);
    } finally {
      process.off('unhandledRejection', note);
    }
  });

  it('is abandoned when it ignores its signal', async () => {
    const clock = new VirtualClock();
    const deaf = deferred();
    const running = execute({
      clock,
      pipeline: [{ uses: 'deaf', timeout_seconds: 1.5 }],
      tools: { deaf: () => deaf.promise },
    });
    await clock.advance(1500);
    expect((await running).result).to.include({ kind: 'failed', retryable: true });
    deaf.reject(new Error('too late to matter'));
    await settle();
  });

  it('has listeners of many parallel steps without a warning', async () => {
    const warned: string[] = [];
    const note = ({ name }: Error): void => void warned.push(name);
    process.on('warning', note);
    const parallel = Array.from({ length: 11 }, () => ({ uses: 'hang' }));
    const clock = new VirtualClock();
    const running = execute({ clock, pipeline: [{ parallel }], tools: { hang } });
    await clock.advance(30_000);
    expect((await running).result).to.include({ kind: 'failed' });
    process.off('warning', note);
    expect(warned).to.deep.equal([]);
  });

  it('may have a longer timeout', async () => {
    const clock = new VirtualClock();
    const pipeline = [{ uses: 'nap', with: { seconds: 3600 }, timeout_seconds: 4000 }];
    const running = execute({ clock, pipeline });
    await clock.advance(3_600_000);
    expect((await running).output['steps']).to.deep.equal({ step_0: { slept_seconds: 3600 } });
  });
});

describe('a run that is told to stop', () => {
  it('aborts the running step, and starts no other', async () => {
    const clock = new VirtualClock();
    const controller = new AbortController();
    const after = recorder();
    const pipeline = [{ uses: 'echo' }, { uses: 'nap', with: { seconds: 9 } }, { uses: 'after' }];
    const running = execute({
      clock,
      pipeline,
      signal: controller.signal,
      tools: { after: after.run },
    });
    await settle();
    controller.abort(new Error('canceled'));
    const { result, recorded } = await running;
    expect(result).to.deep.include({ kind: 'aborted', steps: [] });
    expect(statuses(recorded.flat())).to.deep.equal({ step_0: 'succeeded' });
    expect(after.calls).to.deep.equal([]);
    expect(clock.pending).to.equal(0);
  });

  it('keeps the result of a step that succeeds nevertheless', async () => {
    const controller = new AbortController();
    const late = deferred<string>();
    const running = execute({
      pipeline: [{ uses: 'late' }, { uses: 'echo' }],
      signal: controller.signal,
      tools: { late: () => late.promise },
    });
    await settle();
    controller.abort();
    late.resolve('done');
    const { result, ends } = await running;
    expect(result.kind).to.equal('aborted');
    expect(statuses(ends)).to.deep.equal({ step_0: 'succeeded' });
  });

  it('abandons a step that does not stop within 10 s', async () => {
    const clock = new VirtualClock();
    const controller = new AbortController();
    const running = execute({
      clock,
      pipeline: [{ uses: 'deaf' }],
      signal: controller.signal,
      tools: { deaf: () => new Promise(() => {}) },
    });
    await settle();
    controller.abort();
    await clock.advance(10_000);
    expect((await running).result.kind).to.equal('aborted');
    expect(clock.pending).to.equal(0);
  });

  it("does not wait for a retry's pause", async () => {
    const clock = new VirtualClock();
    const controller = new AbortController();
    const running = execute({
      clock,
      pipeline: [{ uses: 'fail', with: { message: 'x' }, max_retries: 5 }],
      signal: controller.signal,
    });
    await settle();
    controller.abort();
    expect((await running).result.kind).to.equal('aborted');
    expect(clock.pending).to.equal(0);
  });
});

describe('the items of a run', () => {
  const params = { items: new Array<number>(10_000).fill(0) };
  // All items are skipped, but they still count.
  const each = { uses: 'echo', for_each: 'params.items', if: 'item > `0`' };
  const steps = Array.from({ length: 5 }, (_, n) => ({ id: `each_${n}`, ...each }));
  const sixth = { id: 'sixth', ...each, for_each: '${[`1`]}' };

  it('are limited to 50,000 across its steps and attempts', async () => {
    const first = await execute({ pipeline: steps, params });
    expect(first.result).to.include({ kind: 'succeeded' });
    const { ends, result } = await execute({
      pipeline: [...steps, { ...sixth, on_error: 'continue' }],
      params,
      finished: first.ends,
    });
    const error = 'for_each gives 1 more items; the run has 0 of its 50000 items left';
    expect(ends.map((end) => [end.step, end.error])).to.deep.equal([['sixth', error]]);
    expect(result).to.include({ kind: 'succeeded' });
  });

  it('are also counted for parallel steps', async () => {
    const group = [...steps, sixth].map((step, n) => ({ ...step, id: `beside_${n}` }));
    const { ends, result } = await execute({ pipeline: [{ parallel: group }], params });
    expect(result).to.include({ kind: 'failed', retryable: false });
    expect(ends.find(({ status }) => status === 'failed')?.step).to.equal('beside_5');
  });
});
