import { expect } from 'chai';
import fc from 'fast-check';
import { fromIso, toIso } from '../../../domain/clock.ts';
import type { KeyEvent } from '../../../domain/events/catalogue.ts';
import {
  MAX_WAITERS,
  MAX_HOLDERS,
  holdKey,
  keyFold,
  admissibleWaiters,
  releaseAll,
  releaseKey,
  unusedKey,
  type KeyClaim,
  type KeyState,
} from '../../../domain/keys/key.ts';

const name = { kind: 'concurrency', owner: 'agent-1', key: 'printer' } as const;
const start = Date.parse('2026-01-01T00:00:00.000Z');

const claim = (run_id: string, changes: Partial<KeyClaim> = {}): KeyClaim => ({
  run_id,
  task_id: 'task-1',
  trigger: 'manual',
  priority: 5,
  since: start,
  limit: 1,
  attempt: 1,
  ...changes,
});

/** The state of a stream with these events: the last event alone counts. */
function given(events: readonly KeyEvent[], before: KeyState = unusedKey(name)): KeyState {
  const last = events.at(-1);
  const at = { revision: 0, metadata: {} as never };
  return last === undefined ? before : (keyFold.evolve(null, last, at) ?? before);
}

const held = (state: KeyState, wanted: KeyClaim, now = start): KeyState =>
  given(holdKey(state, wanted, now).events, state);

const holders = (state: KeyState): readonly string[] => state.holders.map(({ run_id }) => run_id);
const waiters = (state: KeyState): readonly string[] => state.waiters.map(({ run_id }) => run_id);

describe('a concurrency key', () => {
  it('is held by the first run that wants it', () => {
    const { outcome, events } = holdKey(unusedKey(name), claim('a'), start);
    expect(outcome).to.equal('held');
    expect(events.map(({ type }) => type)).to.deep.equal(['KeyHeld']);
    expect(given(events).holders).to.deep.equal([
      {
        run_id: 'a',
        task_id: 'task-1',
        trigger: 'manual',
        since: toIso(start),
        limit: 1,
        attempt: 1,
      },
    ]);
  });

  it('lets the next run wait when it is full, and records nothing when that run asks again', () => {
    const full = held(unusedKey(name), claim('a'));
    const first = holdKey(full, claim('b'), start);
    expect(first.outcome).to.equal('waiting');
    expect(first.events.map(({ type }) => type)).to.deep.equal(['KeyWaited']);
    expect(holdKey(given(first.events), claim('b'), start + 1)).to.deep.equal({
      outcome: 'waiting',
      events: [],
    });
  });

  it('applies the limit of each run', () => {
    const one = held(unusedKey(name), claim('a', { limit: 2 }));
    expect(holdKey(one, claim('b', { limit: 1 }), start).outcome).to.equal('waiting');
    expect(holdKey(one, claim('c', { limit: 2 }), start).outcome).to.equal('held');
  });

  it('lets no run overtake a waiter', () => {
    const waiting = held(held(unusedKey(name), claim('a')), claim('b', { limit: 1 }));
    expect(holdKey(waiting, claim('c', { limit: 2 }), start).outcome).to.equal('waiting');
    const freed = given(releaseKey(waiting, 'a'));
    expect(holdKey(freed, claim('c'), start).outcome).to.equal('waiting');
    expect(holdKey(freed, claim('b'), start).outcome).to.equal('held');
  });

  it('orders waiters by priority, then by age', () => {
    const wanted = [
      claim('late', { since: start + 2 }),
      claim('early', { since: start + 1 }),
      claim('urgent', { priority: 1, since: start + 3 }),
      claim('least', { priority: 9, since: start }),
    ];
    const state = wanted.reduce(
      (before, each) => held(before, each),
      held(unusedKey(name), claim('a')),
    );
    expect(waiters(state)).to.deep.equal(['urgent', 'early', 'late', 'least']);
    expect(admissibleWaiters(state)).to.deep.equal([]);
    const next = admissibleWaiters(given(releaseKey(state, 'a')));
    expect(next.map(({ run_id }) => run_id)).to.deep.equal(['urgent']);
  });

  it('stays with a run that asks for it again, and records that', () => {
    const state = held(unusedKey(name), claim('a'));
    const again = holdKey(state, claim('a', { attempt: 2 }), start + 5);
    expect(again.outcome).to.equal('held');
    expect(given(again.events).holders).to.deep.equal([
      { ...state.holders[0], since: toIso(start + 5), attempt: 2 },
    ]);
    const late = given(holdKey(given(again.events), claim('a', { attempt: 1 }), start + 6).events);
    expect(late.holders[0]?.attempt).to.equal(2);
  });

  it('is not released by the late end of an earlier attempt', () => {
    const second = held(held(unusedKey(name), claim('a')), claim('a', { attempt: 2 }), start + 1);
    expect(releaseKey(second, 'a', 1)).to.deep.equal([]);
    expect(holders(given(releaseKey(second, 'a', 2)))).to.deep.equal([]);
    expect(holders(given(releaseKey(second, 'a')))).to.deep.equal([]);
  });

  it('keeps the waiter of a run whose earlier attempt ends', () => {
    const state = held(held(unusedKey(name), claim('a')), claim('b', { attempt: 2 }));
    expect(releaseKey(state, 'b', 1)).to.deep.equal([]);
    expect(waiters(given(releaseKey(state, 'b'), state))).to.deep.equal([]);
  });

  it('is released by several runs, one event each', () => {
    const state = held(held(unusedKey(name), claim('a')), claim('b'));
    const { events, state: after } = releaseAll(state, ['a', 'x', 'b']);
    expect(events.map(({ data }) => data.run_id)).to.deep.equal(['a', 'b']);
    expect(after).to.deep.equal(unusedKey(name));
  });

  it('records a limited number of waiters, the first in order', () => {
    let state = held(unusedKey(name), claim('a'));
    for (let index = 0; index < MAX_WAITERS; index += 1) {
      state = held(state, claim(`w${String(index)}`, { since: start + index }));
    }
    const late = claim('late', { since: start + 1000 });
    expect(holdKey(state, late, start)).to.deep.equal({ outcome: 'waiting', events: [] });
    const urgent = held(state, claim('urgent', { priority: 1 }));
    expect(urgent.waiters).to.have.lengthOf(MAX_WAITERS);
    expect(waiters(urgent)[0]).to.equal('urgent');
    expect(waiters(urgent)).to.not.include(`w${String(MAX_WAITERS - 1)}`);
  });

  it('has no more holders than fit into an event, whatever the limit', () => {
    const holder = held(unusedKey(name), claim('a')).holders[0];
    const many = Array.from({ length: MAX_HOLDERS }, (_, index) => ({
      ...holder,
      run_id: `h${String(index)}`,
    })) as unknown as KeyState['holders'];
    const state = { ...unusedKey(name), holders: many };
    expect(holdKey(state, claim('b', { limit: 10_000 }), start).outcome).to.equal('waiting');
  });

  type Command =
    | { readonly kind: 'hold'; readonly run: number }
    | { readonly kind: 'release'; readonly run: number; readonly late: boolean };
  const runs = fc.array(
    fc.record({
      priority: fc.integer({ min: 1, max: 3 }),
      since: fc.integer({ min: 0, max: 5 }),
      limit: fc.integer({ min: 1, max: 3 }),
    }),
    { minLength: 2, maxLength: 8 },
  );
  const commands: fc.Arbitrary<Command[]> = fc.array(
    fc.oneof(
      fc.record({ kind: fc.constant('hold' as const), run: fc.nat(7) }),
      fc.record({ kind: fc.constant('release' as const), run: fc.nat(7), late: fc.boolean() }),
    ),
    { maxLength: 60 },
  );

  it('never has more holders than a holder’s limit allows, and keeps its waiters in order', () => {
    fc.assert(
      fc.property(runs, commands, (wanted, order) => {
        let state = unusedKey(name);
        for (const [turn, command] of order.entries()) {
          const index = command.run % wanted.length;
          const want = wanted[index];
          if (want === undefined) continue;
          const mine = claim(`run-${String(index)}`, { ...want, since: start + want.since });
          const before = state;
          if (command.kind === 'release') {
            state = given(releaseKey(state, mine.run_id, command.late ? 0 : undefined), state);
            expect(state.holders.length).to.be.at.most(before.holders.length);
          } else {
            const decision = holdKey(state, mine, start + turn);
            state = given(decision.events, state);
            const isHolder = holders(state).includes(mine.run_id);
            expect(isHolder).to.equal(decision.outcome === 'held');
            const wasHolder = holders(before).includes(mine.run_id);
            if (isHolder && !wasHolder) {
              expect(state.holders.length).to.be.at.most(mine.limit);
              const better = before.waiters.filter(
                (other) =>
                  other.run_id !== mine.run_id &&
                  (other.priority < mine.priority ||
                    (other.priority === mine.priority && fromIso(other.since) < mine.since)),
              );
              expect(before.holders.length + better.length).to.be.below(mine.limit);
            }
          }
          const ids = [...holders(state), ...waiters(state)];
          expect(new Set(ids).size).to.equal(ids.length);
          for (const [place, waiter] of state.waiters.entries()) {
            const next = state.waiters[place + 1];
            if (next === undefined) continue;
            const rank =
              waiter.priority - next.priority || fromIso(waiter.since) - fromIso(next.since);
            expect(rank).to.be.at.most(0);
          }
          // A key without holders always has an admissible waiter.
          if (state.holders.length === 0 && state.waiters.length > 0) {
            expect(admissibleWaiters(state)[0]?.run_id).to.equal(waiters(state)[0]);
          }
        }
      }),
      { numRuns: 300 },
    );
  });
});
