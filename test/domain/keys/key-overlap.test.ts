import { expect } from 'chai';
import {
  keyFold,
  releaseKey,
  unusedKey,
  type KeyClaim,
  type KeyState,
} from '../../../domain/keys/key.ts';
import { runsAheadOf, claimOverlap, overlapKey } from '../../../domain/keys/overlap.ts';

const now = Date.parse('2026-01-01T12:00:00.000Z');
const unused = unusedKey(overlapKey('task-1', 'agent-1'));

const claim = (run_id: string, since = now): KeyClaim => ({
  run_id,
  task_id: 'task-1',
  trigger: 'schedule',
  priority: 5,
  since,
  limit: 1,
  attempt: 0,
});

const at = { revision: 0, metadata: {} as never };

function after(
  state: KeyState,
  run: KeyClaim,
  policy: 'skip' | 'queue' | 'cancel_running',
): KeyState {
  const decision = claimOverlap(state, run, policy, now);
  const last = decision.outcome === 'skip' ? undefined : decision.events.at(-1);
  return last === undefined ? state : (keyFold.evolve(null, last, at) ?? state);
}

describe("the overlap of a task's runs", () => {
  const one = after(unused, claim('a'), 'skip');

  for (const policy of ['skip', 'queue', 'cancel_running'] as const) {
    it(`lets a single run start under ${policy}, once`, () => {
      expect(claimOverlap(unused, claim('a'), policy, now).outcome).to.equal('held');
      expect(claimOverlap(one, claim('a'), policy, now)).to.deep.equal({
        outcome: 'held',
        events: [],
      });
    });
  }

  for (const policy of ['skip', 'queue'] as const) {
    it(`lets a backfill's run wait under ${policy}, without blocking other runs`, () => {
      const backfilled = { ...claim('z', now - 1000), trigger: 'backfill', priority: 10 } as const;
      const busy = policy === 'skip' ? one : after(one, claim('b'), policy);
      const decision = claimOverlap(busy, backfilled, policy, now);
      expect(decision.outcome).to.equal('waiting');
      const free = [...busy.holders, ...busy.waiters].reduce<KeyState>(
        (state, { run_id }) => {
          const [released] = releaseKey(state, run_id);
          return released === undefined ? state : (keyFold.evolve(null, released, at) ?? state);
        },
        after(busy, backfilled, policy),
      );
      expect(free.waiters.map(({ run_id }) => run_id)).to.deep.equal(['z']);
      expect(claimOverlap(free, claim('c'), policy, now).outcome).to.equal('held');
    });
  }

  it('under skip, skips the second run', () => {
    expect(claimOverlap(one, claim('b'), 'skip', now)).to.deep.equal({
      outcome: 'skip',
      because_of: 'a',
    });
  });

  it('under queue, lets one run wait and skips the next because of it', () => {
    const two = after(one, claim('b', now + 1), 'queue');
    expect(two.waiters.map(({ run_id }) => run_id)).to.deep.equal(['b']);
    expect(claimOverlap(two, claim('b', now + 1), 'queue', now).outcome).to.equal('waiting');
    expect(claimOverlap(two, claim('c', now + 2), 'queue', now)).to.deep.equal({
      outcome: 'skip',
      because_of: 'b',
    });
  });

  it('under queue, lets another run wait once the first waiter is about to start', () => {
    const two = after(one, claim('b', now + 1), 'queue');
    const [released] = releaseKey(two, 'a');
    const { run_id: _about, ...freed } = released?.data ?? { ...two, run_id: '' };
    expect(claimOverlap(freed, claim('c', now + 2), 'queue', now).outcome).to.equal('waiting');
  });

  it('under cancel_running, lets each run wait for all before it', () => {
    const three = after(
      after(one, claim('b', now + 1), 'cancel_running'),
      claim('c', now + 2),
      'cancel_running',
    );
    expect(runsAheadOf(three, 'b')).to.deep.equal(['a']);
    expect(runsAheadOf(three, 'c')).to.deep.equal(['a', 'b']);
    expect(runsAheadOf(three, 'a')).to.deep.equal([]);
  });
});
