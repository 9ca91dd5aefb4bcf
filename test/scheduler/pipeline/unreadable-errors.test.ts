import { expect } from 'chai';
import { ToolError } from '../../../scheduler/tools/tool.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { execute, recorder } from './pipeline-execution-harness.ts';

const NO_REASON = 'the tool failed without an error message';

/** Makes a member of an object throw when it is read. */
const trapped = <T extends object>(value: T, name: string): T =>
  Object.defineProperty(value, name, {
    get: () => {
      throw new Error(`no ${name}`);
    },
  });

describe('a step', () => {
  const unreadable: readonly (readonly [what: string, thrown: unknown, says: string])[] = [
    ['whose message throws', trapped(new Error('m'), 'message'), NO_REASON],
    ['whose message is a number', Object.assign(new Error(), { message: 42 }), 'Error'],
    ['whose message is an object', Object.assign(new Error(), { message: {} }), 'Error'],
    ['without text', Object.assign(new Error(''), { name: Symbol('name') }), NO_REASON],
    ['whose type throws', new Proxy({}, trapped({}, 'getPrototypeOf')), NO_REASON],
    [
      'that says nothing of trying again',
      trapped(new ToolError('m', { retryable: true }), 'retryable'),
      'm',
    ],
  ];
  for (const [what, thrown, says] of unreadable) {
    it(`whose tool throws an error ${what} is retried, and may be ignored`, async () => {
      const clock = new VirtualClock();
      const hostile = recorder(() => {
        throw thrown;
      });
      const running = execute({
        clock,
        pipeline: [
          { uses: 'hostile', max_retries: 1, on_error: 'continue' },
          { uses: 'echo', with: '${steps.step_0.error}' },
        ],
        tools: { hostile: hostile.run },
      });
      await clock.advance(1_000);
      const { output } = await running;
      expect(output['steps']).to.deep.equal({ step_0: { error: says }, step_1: says });
      expect(hostile.calls).to.have.length(2);
    });
  }
});
