import { expect } from 'chai';
import { Announcer } from '../../../stores/sqlite/event-log/announcer.ts';
import type { Committed } from '../../../stores/sqlite/event-log/writer.ts';
import { Signal } from '../../support/signals.ts';

describe('what this process has committed', () => {
  let told: Signal<string>;
  let announcer: Announcer;
  const commit = (last: number, later: Committed['later']): Committed => {
    return { first: last, last, createdAt: 0, appends: [], later };
  };

  beforeEach(() => {
    told = new Signal('what is told');
    announcer = new Announcer({
      publish: (last) => told.send(`up to ${last}`),
      handOn: ({ last }) => told.send(String(last)),
    });
  });

  it('is told at once', () => {
    announcer.take(commit(1, null));
    expect(told.values).to.deep.equal(['up to 1', '1']);
  });

  it('is kept, where it may be told later, until nothing more of the kind is on its way', async () => {
    announcer.take(commit(1, 'more'));
    announcer.take(commit(2, 'more'));
    announcer.take(commit(3, 'last'));
    expect(told.values).to.deep.equal([]);
    expect(announcer.isHolding).to.equal(true);
    await told.wait((value) => value === '3');
    expect(told.values.filter((value) => !value.startsWith('up to'))).to.deep.equal([
      '1',
      '2',
      '3',
    ]);
    // Others read up to there by themselves.
    expect(told.values[0]).to.equal('up to 3');
    expect(announcer.isHolding).to.equal(false);
  });

  it('is not kept for long', async () => {
    announcer.take(commit(1, 'more'));
    await told.wait((value) => value === '1', { limitMs: 5_000 });
  });

  it('is told before what comes behind it', async () => {
    announcer.take(commit(1, 'more'));
    announcer.take(commit(2, null));
    expect(told.values).to.deep.equal(['up to 1', '1', 'up to 2', '2']);
    announcer.take(commit(3, 'last'));
    announcer.take(commit(4, 'last'));
    announcer.take(commit(5, null));
    const handedOn = told.values.filter((value) => !value.startsWith('up to'));
    expect(handedOn).to.deep.equal(['1', '2', '3', '4', '5']);
    expect(announcer.isHolding).to.equal(false);
  });

  it('is told when the log is closed', () => {
    announcer.take(commit(1, 'more'));
    announcer.releaseAll();
    expect(told.values).to.deep.equal(['up to 1', '1']);
  });
});
