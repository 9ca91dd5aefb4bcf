import { expect } from 'chai';
import type { Tool, ToolCall } from '../../../scheduler/tools/tool.ts';
import { Suspension } from '../../../scheduler/tools/tool.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { execute, type Given, type Went } from './pipeline-execution-harness.ts';

describe('the log of a step', () => {
  let clock: VirtualClock;

  beforeEach(() => {
    clock = new VirtualClock();
  });

  afterEach(() => {
    expect(clock.pending).to.equal(0);
  });

  /** A tool that logs `<from> …`, one line per interval in milliseconds, and then ends. */
  const chatty =
    (lines: number, every: number): Tool['run'] =>
    async (_args, call) => {
      for (let line = 1; line <= lines; line += 1) {
        call.log('info', `line ${line}`);
        await call.clock.sleep(every, call.signal);
      }
      return null;
    };

  const run = async (given: Omit<Given, 'clock'>, milliseconds: number): Promise<Went> => {
    const went = execute({ ...given, clock });
    await clock.advance(milliseconds);
    return went;
  };

  /** Messages by the type of the record that has them. */
  const messagesIn = ({ records, result }: Went): readonly string[] => {
    const ends = result.steps.map((data) => ({ type: 'RunStepCompleted' as const, data }));
    return [...records, ...ends].map(({ type, data }) => {
      const log = 'log' in data ? (data.log ?? []) : [];
      return `${type}: ${log.map(({ message }) => message).join(', ')}`;
    });
  };

  it('is recorded while the step runs, each line once', async () => {
    const pipeline = [{ id: 'a', uses: 'chatty' }];
    const went = await run({ pipeline, tools: { chatty: chatty(5, 300) } }, 5000);
    expect(messagesIn(went)).to.deep.equal([
      'RunStepProgressed: line 1, line 2',
      'RunStepProgressed: line 3, line 4',
      'RunStepCompleted: line 5',
    ]);
    expect(went.records[0]?.data).to.have.all.keys('step', 'log');
  });

  it('is recorded half a second after its first line', async () => {
    const pipeline = [{ id: 'a', uses: 'chatty' }];
    const recorded: number[] = [];
    const record = async (): Promise<void> => {
      recorded.push(clock.now());
      await Promise.resolve();
    };
    const from = clock.now();
    await run({ pipeline, tools: { chatty: chatty(1, 60_000) }, record }, 60_000);
    expect(recorded.map((at) => at - from)).to.deep.equal([500]);
  });

  it('needs no separate record in a step that ends sooner', async () => {
    const pipeline = [
      { id: 'a', uses: 'chatty' },
      { id: 'b', uses: 'log', with: { message: 'm' } },
    ];
    const went = await run({ pipeline, tools: { chatty: chatty(2, 100) } }, 5000);
    expect(messagesIn(went)).to.deep.equal([
      'RunStepCompleted: line 1, line 2',
      'RunStepCompleted: m',
    ]);
  });

  it('has at most 50 lines, however they are recorded', async () => {
    const pipeline = [{ id: 'a', uses: 'chatty' }];
    const went = await run({ pipeline, tools: { chatty: chatty(100, 200) } }, 60_000);
    const messages = messagesIn(went).flatMap((each) => each.replace(/^.*?: /, '').split(', '));
    expect(messages.filter((each) => each !== '')).to.have.length(51);
    expect(messages).to.include.members(['line 1', 'line 50']);
    expect(messages.join()).to.include('limited to 50 lines').and.not.include('line 51');
  });

  it('masks secrets in lines that are recorded early', async () => {
    const went = await run(
      {
        secrets: { TOKEN: 'a-very-secret-token' },
        pipeline: [{ id: 'a', uses: 'leaky', with: '${secrets.TOKEN}' }],
        tools: {
          leaky: async (args, call) => {
            call.log('info', `got ${args as string}`, { args });
            await call.clock.sleep(1000, call.signal);
          },
        },
      },
      1000,
    );
    expect(JSON.stringify(went.records)).to.include('got ***').and.not.include('very-secret');
  });

  it('keeps the order of its lines over the tries of the step', async () => {
    let tries = 0;
    const flaky: Tool['run'] = async (_args, call) => {
      tries += 1;
      call.log('info', `try ${tries}`);
      await call.clock.sleep(100, call.signal);
      if (tries < 3) throw new Error('no');
    };
    const pipeline = [{ id: 'a', uses: 'flaky', max_retries: 5 }];
    const went = await run({ pipeline, tools: { flaky } }, 5000);
    const lines = messagesIn(went).flatMap((each) => each.match(/try \d/g) ?? []);
    expect(lines).to.deep.equal(['try 1', 'try 2', 'try 3']);
  });

  it('can be read while the step waits', async () => {
    const waiting: Tool['run'] = (_args, call: ToolCall) => {
      call.log('info', 'asked');
      return new Suspension({ kind: 'timer', seconds: 60 }, clock.now() + 60_000);
    };
    const pipeline = [{ id: 'a', uses: 'waiting' }];
    const went = await run({ pipeline, tools: { waiting } }, 0);
    expect(messagesIn(went)).to.deep.equal(['RunStepProgressed: asked', 'RunStepSuspended: ']);
  });

  it('ignores lines that the tool logs after its end', async () => {
    const late: Tool['run'] = async (_args, call) => {
      call.log('info', 'in time');
      void call.clock
        .sleep(2000, new AbortController().signal)
        .then(() => call.log('info', 'late'));
      await Promise.resolve();
    };
    const pipeline = [
      { id: 'a', uses: 'late' },
      { id: 'b', uses: 'nap', with: { seconds: 3 } },
    ];
    const went = await run({ pipeline, tools: { late } }, 3000);
    expect(messagesIn(went).join()).to.include('in time').and.not.include('late');
  });

  it('ends the execution when it cannot be recorded', async () => {
    const pipeline = [{ id: 'a', uses: 'chatty' }];
    const record = (): Promise<void> => Promise.reject(new Error('the log is full'));
    const went = execute({ pipeline, tools: { chatty: chatty(1, 1000) }, record, clock });
    const failed = went.then(
      () => null,
      (error: unknown) => String(error),
    );
    await clock.advance(1000);
    expect(await failed).to.equal('Error: the log is full');
  });
});
