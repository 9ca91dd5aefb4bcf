import { expect } from 'chai';
import { CommitAnnouncer } from '../../../stores/sqlite/event-log/burst/commit-announcer.ts';
import type { Committed } from '../../../stores/sqlite/event-log/writing/writer.ts';
import { Signal } from '../../support/signals.ts';

describe('a commit of this process', () => {
  let told: Signal<string>;
  let announcer: CommitAnnouncer;
  let isMoreComing: boolean;
  const commit = (last: number, mayBeToldLater: boolean): Committed => {
    return { first: last, last, createdAt: 0, appends: [], mayBeToldLater };
  };
  /** The commits delivered in this process. */
  const handedOn = (): string[] => told.values.filter((value) => /^\d+$/.test(value));

  beforeEach(() => {
    told = new Signal('what is told');
    isMoreComing = true;
    announcer = new CommitAnnouncer({
      publish: (last) => told.send(`up to ${last}`),
      announce: () => told.send('later'),
      deliver: ({ last }) => told.send(String(last)),
      isMoreComing: () => isMoreComing,
    });
  });

  it('is announced at once', () => {
    announcer.add(commit(1, false));
    expect(told.values).to.deep.equal(['up to 1', '1']);
  });

  it('is held, where that is allowed, until no more of its kind is being written', async () => {
    announcer.add(commit(1, true));
    announcer.add(commit(2, true));
    isMoreComing = false;
    announcer.add(commit(3, true));
    expect(told.values).to.deep.equal(['later']);
    expect(announcer.isHolding).to.equal(true);
    await told.wait((value) => value === '3');
    expect(handedOn()).to.deep.equal(['1', '2', '3']);
    // Other processes read up to there themselves.
    expect(told.values[1]).to.equal('up to 3');
    expect(announcer.isHolding).to.equal(false);
  });

  it('is held on when more has been sent by the next turn', async () => {
    isMoreComing = false;
    announcer.add(commit(1, true));
    isMoreComing = true;
    await new Promise((resolve) => setImmediate(resolve));
    expect(told.values).to.deep.equal(['later']);
    announcer.add(commit(2, false));
    expect(handedOn()).to.deep.equal(['1', '2']);
  });

  it('is not held for long', async () => {
    announcer.add(commit(1, true));
    await told.wait((value) => value === '1', { limitMs: 5_000 });
  });

  it('is announced before later commits', () => {
    announcer.add(commit(1, true));
    announcer.add(commit(2, false));
    expect(told.values).to.deep.equal(['later', 'up to 1', '1', 'up to 2', '2']);
    isMoreComing = false;
    announcer.add(commit(3, true));
    announcer.add(commit(4, true));
    announcer.add(commit(5, false));
    expect(handedOn()).to.deep.equal(['1', '2', '3', '4', '5']);
    expect(announcer.isHolding).to.equal(false);
  });

  it('is announced when the log is closed', () => {
    announcer.add(commit(1, true));
    announcer.releaseAll();
    expect(told.values).to.deep.equal(['later', 'up to 1', '1']);
  });
});
