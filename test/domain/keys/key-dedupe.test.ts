import { expect } from 'chai';
import { toIso } from '../../../domain/clock.ts';
import { earlierUse, useDedupeKey, type DedupeUse } from '../../../domain/keys/dedupe.ts';
import { unusedKey, type KeyState } from '../../../domain/keys/key.ts';

const now = Date.parse('2026-01-01T12:00:00.000Z');
const unused = unusedKey({ kind: 'dedupe', owner: 'agent-1', key: 'daily' });

const use = (run_id: string, at: number): DedupeUse => ({
  run_id,
  task_id: 'task-1',
  trigger: 'schedule',
  at,
});

const usedAt = (at: number): KeyState => ({
  ...unused,
  used: {
    run_id: 'first',
    task_id: 'task-1',
    trigger: 'schedule',
    at: toIso(at),
    since: toIso(now),
  },
});

describe('a dedupe key', () => {
  it('is used by the first run', () => {
    const decision = useDedupeKey(unused, use('first', now), 60, 'finished', now);
    expect(decision).to.deep.equal({
      outcome: 'used',
      events: [{ type: 'KeyUsed', data: { ...usedAt(now), run_id: 'first' } }],
    });
  });

  it('makes a later run within the window a duplicate, whether or not the earlier run has ended', () => {
    const at = now + 59_999;
    for (const earlier of ['finished', 'unfinished'] as const) {
      const decision = useDedupeKey(usedAt(now), use('second', at), 60, earlier, at);
      expect(decision).to.include({ outcome: 'duplicate' });
    }
  });

  it('is free again after the window', () => {
    const at = now + 60_000;
    expect(earlierUse(usedAt(now), use('second', at), 60)).to.equal(null);
    const decision = useDedupeKey(usedAt(now), use('second', at), 60, 'unfinished', at);
    expect(decision.outcome).to.equal('used');
  });

  it('without a window, makes a duplicate only while the earlier run is unfinished', () => {
    const second = use('second', now + 5);
    const decide = (earlier: 'finished' | 'unfinished'): string =>
      useDedupeKey(usedAt(now), second, null, earlier, now + 5).outcome;
    expect(decide('unfinished')).to.equal('duplicate');
    expect(decide('finished')).to.equal('used');
  });

  it('does not count the use of a run that never ran', () => {
    const second = use('second', now + 5);
    expect(useDedupeKey(usedAt(now), second, 60, 'void', now).outcome).to.equal('used');
    expect(useDedupeKey(usedAt(now), second, null, 'void', now).outcome).to.equal('used');
  });

  it('is used once by a run that repeats its request', () => {
    const decision = useDedupeKey(usedAt(now), use('first', now), 60, 'unfinished', now + 9);
    expect(decision).to.deep.equal({ outcome: 'used', events: [] });
  });

  it('keeps the latest time after a late fire', () => {
    const decision = useDedupeKey(usedAt(now), use('late', now - 600_000), 60, 'finished', now);
    const uses = decision.outcome === 'used' ? decision.events.map(({ data }) => data.used) : [];
    expect(uses.map((one) => one?.run_id)).to.deep.equal(['late', 'first']);
  });

  it('with a window of 0 seconds, makes no run a duplicate', () => {
    expect(useDedupeKey(usedAt(now), use('second', now), 0, 'unfinished', now).outcome).to.equal(
      'used',
    );
  });
});
