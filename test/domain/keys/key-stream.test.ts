import { expect } from 'chai';
import { EventStoreError } from '../../../domain/event-store.ts';
import { changeKey, readKey, type KeyChanged } from '../../../domain/keys/key-stream.ts';
import { holdKey, releaseKey, type KeyDecision, type KeyName } from '../../../domain/keys/key.ts';
import { streams } from '../../../domain/streams.ts';
import { answerLost, MemoryLog } from '../memory-log.ts';

const name: KeyName = { kind: 'concurrency', owner: 'agent-1', key: 'printer' };
const now = Date.parse('2026-01-01T00:00:00.000Z');
const stream = streams.key(name.kind, name.owner, name.key);

describe('concurrent changes of a key by one process', () => {
  let log: MemoryLog;
  beforeEach(() => {
    log = new MemoryLog();
  });

  const context = (correlationId: string) => ({
    actor: 'service',
    source: 'worker',
    correlationId,
    now,
  });
  const claim = (run: string): Promise<KeyChanged<KeyDecision['outcome']>> =>
    changeKey(log, name, context(run), (state) => {
      const base = { run_id: run, task_id: 'task-1', trigger: 'manual', priority: 5 } as const;
      const wanted = { ...base, since: now, limit: 1, attempt: 1 };
      const { events, outcome } = holdKey(state, wanted, now);
      return { events, answer: outcome };
    });
  const release = (run: string): Promise<KeyChanged<null>> =>
    changeKey(log, name, context(run), (state) => ({
      events: releaseKey(state, run),
      answer: null,
    }));
  const types = (): readonly string[] => (log.streams.get(stream) ?? []).map(({ type }) => type);

  it('that arrive during an append share the next append', async () => {
    const runs = ['r1', 'r2', 'r3', 'r4', 'r5'];
    const answers = await Promise.all(runs.map(claim));
    expect(answers.map(({ answer }) => answer)).to.deep.equal([
      'held',
      ...Array<string>(4).fill('waiting'),
    ]);
    expect(log.asked).to.equal(2);
    // Runs that begin to wait together share one event.
    expect(types()).to.deep.equal(['KeyHeld', 'KeyWaited']);
    const state = await readKey(log, name);
    expect(state?.waiters.map(({ run_id }) => run_id)).to.deep.equal(runs.slice(1));
  });

  it('are each decided on the result of the one before', async () => {
    await claim('r1');
    const [, taken] = await Promise.all([claim('r2'), release('r1'), claim('r3'), claim('r2')]);
    expect(taken.state.holders.map(({ run_id }) => run_id)).to.deep.equal(['r2']);
    const state = await readKey(log, name);
    expect(state?.holders.map(({ run_id }) => run_id)).to.deep.equal(['r2']);
    expect(state?.waiters.map(({ run_id }) => run_id)).to.deep.equal(['r3']);
  });

  it('are decided again together after a lost race', async () => {
    await claim('r1');
    const other = new MemoryLog();
    Object.assign(other, { streams: log.streams });
    log.onAppend = async (_append, n) => {
      if (n === 2) {
        await changeKey(other, name, context('r1'), (state) => ({
          events: releaseKey(state, 'r1'),
          answer: null,
        }));
      }
    };
    const answers = await Promise.all([claim('r2'), claim('r3')]);
    expect(answers.map(({ answer }) => answer)).to.deep.equal(['held', 'waiting']);
  });

  it('fail alone if their own decision fails, and together if the log fails', async () => {
    const refused = new Error('the decision failed');
    const failing = changeKey(log, name, context('r0'), () => Promise.reject(refused));
    const results = await Promise.allSettled([claim('r1'), failing, claim('r2')]);
    expect(results.map(({ status }) => status)).to.deep.equal([
      'fulfilled',
      'rejected',
      'fulfilled',
    ]);
    log.onAppend = () => {
      throw new EventStoreError('UNAVAILABLE', 'away');
    };
    const all = await Promise.allSettled([release('r1'), claim('r3'), claim('r4')]);
    expect(all.map(({ status }) => status)).to.deep.equal(['rejected', 'rejected', 'rejected']);
    log.onAppend = () => {};
    expect((await claim('r3')).answer).to.equal('waiting');
  });

  it('are not retried if the log has already retried the append', async () => {
    log.onAppend = () => {
      throw answerLost(true);
    };
    const all = await Promise.allSettled([claim('r1'), claim('r2')]);
    expect(all.map(({ status }) => status)).to.deep.equal(['rejected', 'rejected']);
    expect(log.asked).to.equal(2);
  });

  it('are split into appends of limited size', async () => {
    const holders = 600;
    const claims = Array.from({ length: holders }, (_, index) =>
      changeKey(log, name, context('x'), (state) => {
        const run_id = `r${String(index)}`;
        const base = { run_id, task_id: 'task-1', trigger: 'manual', priority: 5 } as const;
        const wanted = { ...base, since: now, limit: holders, attempt: 1 };
        return { events: holdKey(state, wanted, now).events, answer: null };
      }),
    );
    let largest = 0;
    log.onAppend = ({ events }) => {
      largest = Math.max(largest, JSON.stringify(events).length);
    };
    await Promise.all(claims);
    expect((await readKey(log, name))?.holders).to.have.lengthOf(holders);
    expect(largest)
      .to.be.greaterThan(20_000)
      .and.lessThan(512 * 1024);
  });
});
