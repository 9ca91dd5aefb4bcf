import { expect } from 'chai';
import type { ToolCalled } from '../../../api/access/tool-calls.ts';
import { DirectCalls } from '../../../app/extending/direct-calls.ts';
import { CallSlots } from '../../../scheduler/call-slots.ts';
import { Signal } from '../../support/signals.ts';
import { settle, VirtualClock } from '../../support/virtual-clock.ts';

function make(size: number) {
  const clock = new VirtualClock(0);
  const slots = new CallSlots(size, clock);
  const noted: ToolCalled[] = [];
  const record = { note: (called: ToolCalled) => void noted.push(called) };
  const calls = new DirectCalls({ slots, record, clock });
  const gone = new AbortController();
  const origin = { source: '203.0.113.7', correlationId: 'asked', reason: 'because' };
  const who = { actAs: 'agent-1', namespace: 'default' };
  const call = { tool: 'sleep', ...who, origin, signal: gone.signal };
  const outcomes = () => noted.map(({ outcome, code }) => [outcome, code]);
  return { clock, slots, noted, calls, call, gone, outcomes };
}

describe('a direct tool call', () => {
  it('is recorded with its caller, origin and result', async () => {
    const { calls, call, noted, outcomes, slots } = make(2);
    expect(await calls.carryOut(call, () => Promise.resolve(7))).to.equal(7);
    await calls.carryOut(call, () => Promise.reject(new Error('no'))).catch(() => {});
    expect(outcomes()).to.deep.equal([
      ['done', null],
      ['failed', 'tool_failed'],
    ]);
    expect(noted[0]).to.deep.include({ agentId: 'agent-1', tool: 'sleep' });
    expect(noted[0]?.context).to.include({ source: '203.0.113.7', correlationId: 'asked' });
    expect(slots.taken).to.equal(0);
  });

  it('is refused, and recorded as such, if no slot becomes free', async () => {
    const { calls, call, clock, outcomes } = make(1);
    const ended = new Signal<void>();
    const first = calls.carryOut(call, () => ended.next());
    const second = calls.carryOut(call, () => Promise.resolve()).catch((error: unknown) => error);
    await settle();
    await clock.advance(5_000);
    expect(await second)
      .to.include({ code: 'unavailable' })
      .and.have.property('message')
      .that.contains('create a task for it');
    expect(outcomes()).to.deep.equal([['refused', 'unavailable']]);
    ended.send();
    await first;
  });

  it('may call another within its own slot', async () => {
    const { calls, call, slots, outcomes } = make(1);
    const within = (): Promise<number> =>
      calls.carryOut({ ...call, tool: 'echo' }, async () => slots.taken);
    expect(await calls.carryOut(call, within)).to.equal(1);
    expect(outcomes()).to.deep.equal([
      ['done', null],
      ['done', null],
    ]);
  });

  it('keeps its slot for ten seconds if it ignores that its caller has disconnected', async () => {
    const { calls, call, gone, clock, slots } = make(1);
    void calls.carryOut(call, () => new Promise(() => {}));
    await settle();
    gone.abort();
    expect(slots.taken).to.equal(1);
    await clock.advance(10_000);
    expect(slots.taken).to.equal(0);
  });
});
