import { expect } from 'chai';
import type { EventStore } from '../../../domain/event-store.ts';
import {
  MAX_WAITERS,
  holdKey,
  unusedKey,
  type KeyClaim,
  type KeyState,
} from '../../../domain/keys/key.ts';
import { silent } from '../../../observability/telemetry.ts';
import { KeyWatch } from '../../../scheduler/keys/key-watch.ts';
import type { Membership } from '../../../scheduler/processes/membership.ts';
import type { QueuedRun } from '../../../scheduler/runs/queued-run.ts';
import type { RunQueue } from '../../../scheduler/runs/run-queue.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const name = { kind: 'concurrency', owner: 'o', key: 'printer' } as const;

const claim = (index: number, priority = 5): KeyClaim => ({
  run_id: `r${index}`,
  task_id: 't',
  trigger: 'manual',
  priority,
  since: index,
  limit: 1,
  attempt: 1,
});

/** The key after this many claims. */
function keyWanted(by: number): KeyState {
  let state: KeyState = unusedKey(name);
  for (let index = 0; index < by; index += 1) {
    const [event] = holdKey(state, claim(index), index).events;
    if (event !== undefined) state = event.data;
  }
  return state;
}

/** A watch in a process where these runs wait for the key. */
function watchWith(waiting: readonly number[]): KeyWatch {
  const watch = new KeyWatch({
    store: {} as EventStore,
    queue: {} as RunQueue,
    membership: {} as Membership,
    clock: new VirtualClock(),
    telemetry: silent,
  });
  for (const index of waiting) {
    const { run_id: id, priority, since } = claim(index);
    const run = { id, priority, since, state: 'queued', ended: false } as QueuedRun;
    watch.startWaiting(run, name);
  }
  return watch;
}

const range = (from: number, to: number): number[] =>
  Array.from({ length: to - from }, (_, index) => from + index);

describe('a run that arrives behind many unrecorded runs', () => {
  // One run holds the key, and one waiter's place is free.
  const state = keyWanted(MAX_WAITERS);
  const placed = MAX_WAITERS;

  it('waits with them to be recorded together', () => {
    const watch = watchWith(range(placed, placed + MAX_WAITERS));
    expect(watch.isBehindUnrecorded(state, claim(1000))).to.equal(true);
  });

  it('is recorded by itself if fewer wait, or if it goes before them', () => {
    const few = watchWith(range(placed, placed + MAX_WAITERS - 1));
    expect(few.isBehindUnrecorded(state, claim(1000))).to.equal(false);
    const many = watchWith(range(placed, placed + MAX_WAITERS));
    expect(many.isBehindUnrecorded(state, claim(1000, 1))).to.equal(false);
    expect(many.isBehindUnrecorded(state, claim(placed))).to.equal(false);
  });

  it('is recorded by itself if few are recorded, or if it is recorded already', () => {
    const many = watchWith(range(placed, placed + MAX_WAITERS));
    expect(many.isBehindUnrecorded(keyWanted(MAX_WAITERS / 2), claim(1000))).to.equal(false);
    expect(many.isBehindUnrecorded(state, claim(3))).to.equal(false);
  });
});

describe('unrecorded runs', () => {
  const state = keyWanted(MAX_WAITERS - 2);

  it('are recorded in order, as many as fit', () => {
    const queued = [...range(MAX_WAITERS, 3 * MAX_WAITERS)].reverse();
    const watch = watchWith([...queued, 3]);
    const free = MAX_WAITERS - state.waiters.length;
    const best = watch.unrecorded(state, MAX_WAITERS).map(({ id }) => id);
    expect(best).to.deep.equal(
      queued
        .slice(-free)
        .reverse()
        .map((index) => `r${index}`),
    );
  });

  it('are recorded once few waiters are left', () => {
    const watch = watchWith([100]);
    expect(watch.unrecorded(state)).to.deep.equal([]);
    expect(watch.unrecorded(keyWanted(3)).map(({ id }) => id)).to.deep.equal(['r100']);
  });
});
