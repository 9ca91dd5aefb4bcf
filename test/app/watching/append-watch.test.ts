import { expect } from 'chai';
import { watchAppends } from '../../../app/watching/append-watch.ts';
import { EventStoreError, type EventStore } from '../../../domain/event-store.ts';

describe('the watch over appends', () => {
  /** A log whose appends fail with the given error. */
  function watched() {
    const state: { error: Error | null; now: number } = { error: null, now: 0 };
    const append = async () => {
      if (state.error !== null) throw state.error;
      return { revision: 0, position: '0', duplicate: false };
    };
    const store = { append } as unknown as EventStore;
    const log = watchAppends(store, () => state.now);
    const tries = () => log.store.append('a', [], 'any').catch((error: unknown) => error);
    return { state, tries, refusal: log.refusal };
  }
  const full = new EventStoreError('UNAVAILABLE', 'the disk is full');

  it('says why the log rejects writes, until it accepts one', async () => {
    const { state, tries, refusal } = watched();
    expect(refusal()).to.equal(null);
    state.error = full;
    expect(await tries()).to.equal(full);
    expect(refusal()).to.equal('the disk is full');
    state.error = null;
    await tries();
    expect(refusal()).to.equal(null);
  });

  it('says so for a minute after the last attempt', async () => {
    const { state, tries, refusal } = watched();
    state.error = full;
    await tries();
    state.now = 59_999;
    expect(refusal()).to.equal('the disk is full');
    state.now = 60_000;
    expect(refusal()).to.equal(null);
    await tries();
    expect(refusal()).to.equal('the disk is full');
  });

  it('ignores lost races', async () => {
    const { state, tries, refusal } = watched();
    state.error = new EventStoreError('CONFLICT', 'it is at 1, not 0');
    await tries();
    expect(refusal()).to.equal(null);
  });
});
