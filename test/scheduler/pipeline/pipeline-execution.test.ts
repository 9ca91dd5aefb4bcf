import { expect } from 'chai';
import type { StepEnd } from '../../../domain/events/catalogue.ts';
import { MAX_EVENT_BYTES } from '../../../domain/event-store.ts';
import type { Tool, ToolCall } from '../../../scheduler/tools/tool.ts';
import { settle, VirtualClock } from '../../support/virtual-clock.ts';
import { execute, recorder } from './pipeline-execution-harness.ts';

const statuses = (ends: readonly StepEnd[]): Record<string, string> =>
  Object.fromEntries(ends.map(({ step, status }) => [step, status]));

describe('a pipeline', () => {
  it('without steps succeeds', async () => {
    const { result, output } = await execute({ pipeline: [] });
    expect(result).to.include({ kind: 'succeeded' });
    expect(output['steps']).to.deep.equal({});
  });

  it('ends synchronously when all its steps are synchronous, whatever the outcome', async () => {
    const fails = { uses: 'fail', with: { message: 'no' } };
    for (const [pipeline, kind] of [
      [[], 'succeeded'],
      [
        [
          { uses: 'echo', with: 1 },
          { uses: 'echo', if: 'params.none' },
        ],
        'succeeded',
      ],
      [[{ uses: 'echo' }, fails, { uses: 'echo' }], 'failed'],
      [[{ ...fails, on_error: 'continue' }], 'succeeded'],
      [[{ uses: 'nothing.known' }], 'failed'],
    ] as const) {
      const { result, atOnce } = await execute({ pipeline });
      expect({ kind: result.kind, atOnce }, JSON.stringify(pipeline)).to.deep.equal({
        kind,
        atOnce: true,
      });
    }
  });

  it('becomes asynchronous at its first asynchronous step', async () => {
    const { run, calls } = recorder();
    const pipeline = [{ uses: 'echo' }, { uses: 'slow', id: 'b' }, { uses: 'echo' }];
    const { result, atOnce, ends } = await execute({ pipeline, tools: { slow: run } });
    expect(result).to.include({ kind: 'succeeded' });
    expect(atOnce).to.equal(false);
    expect(calls).to.have.lengthOf(1);
    expect(ends.map(({ step }) => step)).to.deep.equal(['step_0', 'b', 'step_2']);
  });

  it('gives each step the results of earlier steps', async () => {
    const { output } = await execute({
      params: { who: 'Ada' },
      pipeline: [
        { uses: 'echo', with: { name: '${params.who}' }, save_as: 'person' },
        { uses: 'transform', with: { expression: 'length(@)', input: '${steps.person.name}' } },
        { uses: 'echo', with: 'n=${steps.step_1}, ${steps.step_0.name}, attempt ${run.attempt}' },
      ],
    });
    expect(output).to.deep.equal({
      steps: { person: { name: 'Ada' }, step_1: 3, step_2: 'n=3, Ada, attempt 1' },
      summary: { total_steps: 3, executed_steps: 3, skipped_steps: 0 },
    });
  });

  it('sees its triggering event and the time', async () => {
    const { output } = await execute({
      event: { topic: 'order.new', payload: { id: 5 } },
      clock: new VirtualClock('2026-05-01T00:00:00Z'),
      pipeline: [{ uses: 'echo', with: ['${event.payload.id}', '${now+1h}'] }],
    });
    expect(output['steps']).to.deep.equal({ step_0: [5, '2026-05-01T01:00:00.000Z'] });
  });

  it('of synchronous tools sets no timer', async () => {
    const clock = new VirtualClock();
    clock.at = () => expect.fail('a timer was set');
    const { ends } = await execute({
      clock,
      pipeline: [{ uses: 'echo' }, { uses: 'log', with: { message: 'hi' } }],
    });
    expect(ends).to.have.lengthOf(2);
  });

  it('that is invalid fails without a retry', async () => {
    const { result } = await execute({ pipeline: [{ uses: 5 }] });
    expect(result).to.include({ kind: 'failed', step: null, retryable: false });
    expect(result.kind === 'failed' && result.error).to.match(/payload\.pipeline\.0\.uses/);
  });

  it('yields the event loop regularly', async () => {
    const clock = new VirtualClock();
    const slow: Omit<Tool, 'name'> = {
      description: '',
      schema: {},
      synchronous: true,
      run: () => clock.jumpTo(clock.now() + 3),
    };
    const pipeline = Array.from({ length: 20 }, () => ({ uses: 'slow' }));
    let turns = 0;
    let over = false;
    const count = (): void => {
      turns += 1;
      if (!over) setImmediate(count);
    };
    setImmediate(count);
    const { recorded } = await execute({ clock, pipeline, tools: { slow } });
    over = true;
    expect(turns).to.be.greaterThan(4);
    expect(recorded).to.have.length.greaterThan(4);
  });

  it('runs thousands of steps', async () => {
    const pipeline = Array.from({ length: 5000 }, () => ({ uses: 'echo', with: 1 }));
    const { ends, output } = await execute({ pipeline });
    expect(ends).to.have.lengthOf(5000);
    expect(output['summary']).to.include({ executed_steps: 5000 });
  });
});

describe('the stop signal', () => {
  it('is not created while no tool reads it', async () => {
    let asked = 0;
    const { signal } = new AbortController();
    const looks = { description: '', schema: {}, synchronous: true } as const;
    const given = {
      pipeline: [{ uses: 'echo' }, { uses: 'looks' }, { uses: 'echo' }],
      tools: { looks: { ...looks, run: (_: unknown, call: ToolCall) => call.signal.aborted } },
      stop: {
        aborted: false,
        get signal() {
          asked += 1;
          return signal;
        },
      },
    };
    const { ends } = await execute(given);
    expect(ends.map(({ result }) => result)).to.deep.equal([{}, false, {}]);
    expect(asked).to.equal(1);
  });
});

describe('a condition', () => {
  const cases: readonly (readonly [condition: unknown, runs: boolean])[] = [
    ['params.yes', true],
    ['${params.yes}', true],
    ['params.n == `0`', true],
    ['params.n', true],
    ['params.no', false],
    ['params.missing', false],
    ['params.empty', false],
    ['params.list', false],
    ['params.object', false],
    ['${params.list}', false],
    ['!(params.list)', true],
    ['steps.step_9', false],
    [true, true],
    [false, false],
  ];
  const params = { yes: true, no: false, n: 0, empty: '', list: [], object: {} };
  for (const [condition, runs] of cases) {
    it(`${JSON.stringify(condition)} ${runs ? 'lets the step run' : 'skips the step'}`, async () => {
      const { ends } = await execute({ params, pipeline: [{ uses: 'echo', if: condition }] });
      expect(statuses(ends)).to.deep.equal({ step_0: runs ? 'succeeded' : 'skipped' });
    });
  }

  it('that is invalid fails the run with its text, without a retry', async () => {
    const { result } = await execute({ pipeline: [{ uses: 'echo', if: 'a ==' }] });
    expect(result).to.include({ kind: 'failed', step: 'step_0', retryable: false });
    expect(result.kind === 'failed' && result.error).to.include('"a =="');
  });
});

describe('a step', () => {
  it('that fails ends the run with its error', async () => {
    const after = recorder();
    const { result, output } = await execute({
      pipeline: [{ uses: 'echo' }, { uses: 'fail', with: { message: 'no' } }, { uses: 'after' }],
      tools: { after: after.run },
    });
    expect(result).to.include({ kind: 'failed', error: 'no', step: 'step_1', retryable: true });
    expect(statuses(result.steps)).to.deep.equal({ step_0: 'succeeded', step_1: 'failed' });
    expect(output['summary']).to.deep.equal({
      total_steps: 3,
      executed_steps: 2,
      skipped_steps: 0,
      failed_step: 'step_1',
    });
    expect(after.calls).to.deep.equal([]);
  });

  it('that fails with on_error: continue lets later steps see its error', async () => {
    const { result, output } = await execute({
      pipeline: [
        { uses: 'fail', with: { message: 'no' }, on_error: 'continue' },
        { uses: 'echo', with: '${steps.step_0.error}' },
      ],
    });
    expect(result.kind).to.equal('succeeded');
    expect(output['steps']).to.deep.equal({ step_0: { error: 'no' }, step_1: 'no' });
  });

  const faults: readonly (readonly [what: string, step: object, says: RegExp])[] = [
    ['an unknown tool', { uses: 'acme.ship' }, /no tool named acme\.ship/],
    ['bad arguments', { uses: 'sleep', with: { seconds: '${params.x}' } }, /with\.seconds/],
    ['a broken expression', { uses: 'echo', with: '${a(}' }, /"a\("/],
    ['a missing secret', { uses: 'reveal', with: '${secrets.NOPE}' }, /no secret NOPE/],
    ['a for_each over text', { uses: 'echo', for_each: "'x'" }, /must give an array, got string/],
    ['a result that is not JSON', { uses: 'cycle' }, /not JSON/],
    ['a fault that says so', { uses: 'fail', with: { message: 'm', retryable: false } }, /m/],
    ['a broken transformation', { uses: 'transform', with: { expression: ')', input: 1 } }, /"\)"/],
  ];
  for (const [what, step, says] of faults) {
    it(`fails permanently: ${what}`, async () => {
      const cycle = (): unknown => {
        const loop: Record<string, unknown> = {};
        loop['loop'] = loop;
        return loop;
      };
      const { result } = await execute({
        params: { x: 'far too long' },
        pipeline: [{ max_retries: 3, ...step }],
        tools: { cycle },
      });
      expect(result).to.include({ kind: 'failed', step: 'step_0', retryable: false });
      expect(result.kind === 'failed' && result.error).to.match(says);
    });
  }

  it('receives its agent, and the same key at each attempt', async () => {
    const tool = recorder();
    const pipeline = [
      { uses: 'tool', id: 'send' },
      { uses: 'tool', id: 'each', for_each: [1, 2] },
    ];
    await execute({ pipeline, tools: { tool: tool.run } });
    await execute({ pipeline, tools: { tool: tool.run }, attempt: 2 });
    const keys = tool.calls.map(({ call }) => call.idempotencyKey);
    const once = ['run-1:send', 'run-1:each[0]', 'run-1:each[1]'];
    expect(keys).to.deep.equal([...once, ...once]);
    expect(tool.calls[0]?.call).to.include({ actAs: 'agent-1', taskId: 'task-1', step: 'send' });
  });

  it('is recorded before the next step with an outside effect', async () => {
    const order: string[] = [];
    const tool = recorder((_, call) => order.push(`ran ${call.step}`));
    const { result } = await execute({
      pipeline: [{ uses: 'tool' }, { uses: 'echo' }, { uses: 'tool' }],
      tools: { tool: tool.run },
      record: async (steps) => {
        await settle(1);
        order.push(...steps.map(({ step }) => `recorded ${step}`));
      },
    });
    expect(order).to.deep.equal(['ran step_0', 'recorded step_0', 'recorded step_1', 'ran step_2']);
    expect(result.steps.map(({ step }) => step)).to.deep.equal(['step_2']);
  });

  it('that cannot be recorded stops the execution', async () => {
    const tool = recorder();
    const record = (): Promise<void> => Promise.reject(new Error('fenced'));
    let error: unknown;
    try {
      await execute({
        pipeline: [{ uses: 'tool' }, { uses: 'tool' }],
        tools: { tool: tool.run },
        record,
      });
    } catch (caught) {
      error = caught;
    }
    expect(error).to.have.property('message', 'fenced');
    expect(tool.calls).to.have.lengthOf(1);
  });

  it("whose result is too large for the run's last event is recorded before it", async () => {
    const { result, recorded, ends, output } = await execute({
      pipeline: Array.from({ length: 4 }, () => ({ uses: 'big' })),
      tools: {
        big: { description: '', schema: {}, synchronous: true, run: () => 'x'.repeat(200_000) },
      },
    });
    expect(ends).to.have.lengthOf(4);
    expect(recorded).to.have.length.greaterThan(1);
    for (const batch of recorded) {
      expect(JSON.stringify(batch).length).to.be.lessThan(MAX_EVENT_BYTES);
    }
    expect(JSON.stringify(result).length).to.be.lessThan(MAX_EVENT_BYTES);
    expect(Object.keys(output['steps'] as object)).to.have.lengthOf(4);
  });

  it('fits into one event with its largest result and log', async () => {
    const { ends } = await execute({
      pipeline: [{ uses: 'chatty' }],
      tools: {
        chatty: (_, call) => {
          for (let line = 0; line < 100; line += 1) {
            call.log('info', '\u0001'.repeat(5000), { data: 'ü'.repeat(50_000) });
          }
          return 'ü'.repeat(1_000_000);
        },
      },
    });
    const [end] = ends;
    expect(end?.log).to.have.length.greaterThan(1);
    expect(Buffer.byteLength(JSON.stringify(end))).to.be.lessThan(MAX_EVENT_BYTES * 0.9);
  });

  it('records its log with its end, also when it fails', async () => {
    const { ends } = await execute({
      pipeline: [
        { uses: 'log', with: { message: 'n=${params.n}', level: 'warn', data: { a: 1 } } },
        { uses: 'talks' },
      ],
      params: { n: 1 },
      tools: {
        talks: (_, call) => {
          call.log('debug', 'about to fail');
          throw new Error('failed');
        },
      },
    });
    expect(ends[0]?.log).to.deep.equal([
      {
        at: '2026-01-01T00:00:00.000Z',
        level: 'warn',
        message: 'n=1',
        step: 'step_0',
        data: { a: 1 },
      },
    ]);
    expect(ends[1]?.log[0]).to.include({ message: 'about to fail', step: 'step_1' });
  });
});
