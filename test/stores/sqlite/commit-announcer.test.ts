import { expect } from 'chai';
import { CommitAnnouncer } from '../../../stores/sqlite/event-log/burst/commit-announcer.ts';
import type { Committed } from '../../../stores/sqlite/event-log/writing/writer.ts';
import { Signal } from '../../support/signals.ts';

describe('a commit of this process', () => {
  let announced: Signal<string>;
  let announcer: CommitAnnouncer;
  let isMoreComing: boolean;
  const commit = (last: number, mayAnnounceLater: boolean): Committed => {
    return { first: last, last, createdAt: 0, appends: [], mayAnnounceLater };
  };
  /** The commits delivered in this process. */
  const handedOn = (): string[] => announced.values.filter((value) => /^\d+$/.test(value));

  beforeEach(() => {
    announced = new Signal('the announcements');
    isMoreComing = true;
    announcer = new CommitAnnouncer({
      publish: (last) => announced.send(`up to ${last}`),
      announce: () => announced.send('later'),
      deliver: ({ last }) => announced.send(String(last)),
      isMoreComing: () => isMoreComing,
    });
  });

  it('is announced at once', () => {
    announcer.add(commit(1, false));
    expect(announced.values).to.deep.equal(['up to 1', '1']);
  });

  it('is held back, if that is allowed, until no more such commits are being written', async () => {
    announcer.add(commit(1, true));
    announcer.add(commit(2, true));
    isMoreComing = false;
    announcer.add(commit(3, true));
    expect(announced.values).to.deep.equal(['later']);
    expect(announcer.isHolding).to.equal(true);
    await announced.wait((value) => value === '3');
    expect(handedOn()).to.deep.equal(['1', '2', '3']);
    // One notice is enough for other processes, which read up to this commit themselves.
    expect(announced.values[1]).to.equal('up to 3');
    expect(announcer.isHolding).to.equal(false);
  });

  it('is held back longer if more appends have been sent by the next turn of the event loop', async () => {
    isMoreComing = false;
    announcer.add(commit(1, true));
    isMoreComing = true;
    await new Promise((resolve) => setImmediate(resolve));
    expect(announced.values).to.deep.equal(['later']);
    announcer.add(commit(2, false));
    expect(handedOn()).to.deep.equal(['1', '2']);
  });

  it('is not held back for long', async () => {
    announcer.add(commit(1, true));
    await announced.wait((value) => value === '1');
  });

  it('is announced before later commits', () => {
    announcer.add(commit(1, true));
    announcer.add(commit(2, false));
    expect(announced.values).to.deep.equal(['later', 'up to 1', '1', 'up to 2', '2']);
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
    expect(announced.values).to.deep.equal(['later', 'up to 1', '1']);
  });
});
