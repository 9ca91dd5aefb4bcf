import { expect } from 'chai';
import { setImmediate as turn } from 'node:timers/promises';
import { StartsFirst } from '../../../scheduler/burst/starts-first.ts';

describe('the order of starts and ends', () => {
  /** Whether `wait` has resolved. */
  const watch = (startsFirst: StartsFirst): { readonly over: boolean } => {
    const seen = { over: false };
    const waiting = startsFirst.wait();
    if (waiting === null) seen.over = true;
    else void waiting.then(() => (seen.over = true));
    return seen;
  };

  it('lets an end pass at once without pending starts', () => {
    expect(new StartsFirst().wait()).to.equal(null);
  });

  it('delays an end until pending starts are written, but not for later ones', async () => {
    const startsFirst = new StartsFirst();
    const [first, second] = [startsFirst.begin(), startsFirst.begin()];
    const end = watch(startsFirst);
    const later = startsFirst.begin();
    first();
    await turn();
    expect(end.over).to.equal(false);
    second();
    await turn();
    expect(end.over).to.equal(true);
    later();
  });

  it('delays ends while more starts follow', async () => {
    const startsFirst = new StartsFirst();
    const first = startsFirst.begin();
    const letEnd = startsFirst.hold();
    first();
    const end = watch(startsFirst);
    const second = startsFirst.begin();
    await turn();
    expect(end.over).to.equal(false);
    letEnd();
    await turn();
    expect(end.over).to.equal(false);
    second();
    await turn();
    expect(end.over).to.equal(true);
    expect(startsFirst.wait()).to.equal(null);
  });

  it('releases the ends when no start follows', async () => {
    const startsFirst = new StartsFirst();
    const letEnd = startsFirst.hold();
    const end = watch(startsFirst);
    letEnd();
    await turn();
    expect(end.over).to.equal(true);
  });

  describe('with work on started runs', () => {
    it('begins it at once when no starts follow', () => {
      const begun: string[] = [];
      new StartsFirst().whenStarted(() => begun.push('one'));
      expect(begun).to.deep.equal(['one']);
    });

    it('begins it in order after the starts that follow', async () => {
      const startsFirst = new StartsFirst();
      const begun: number[] = [];
      const letBegin = startsFirst.hold();
      for (const number of [1, 2]) startsFirst.whenStarted(() => begun.push(number));
      await turn();
      expect(begun).to.deep.equal([]);
      letBegin();
      startsFirst.whenStarted(() => begun.push(3));
      await turn();
      expect(begun).to.deep.equal([1, 2, 3]);
    });

    it('keeps waiting if more starts follow in the meantime', async () => {
      const startsFirst = new StartsFirst();
      const begun: string[] = [];
      const letBegin = startsFirst.hold();
      startsFirst.whenStarted(() => begun.push('one'));
      letBegin();
      const letBeginThen = startsFirst.hold();
      await turn();
      expect(begun).to.deep.equal([]);
      letBeginThen();
      await turn();
      expect(begun).to.deep.equal(['one']);
    });

    it('begins all of it once when the worker stops', async () => {
      const startsFirst = new StartsFirst();
      const begun: number[] = [];
      const letBegin = startsFirst.hold();
      for (const number of [1, 2]) startsFirst.whenStarted(() => begun.push(number));
      startsFirst.beginAll();
      expect(begun).to.deep.equal([1, 2]);
      letBegin();
      await turn();
      expect(begun).to.deep.equal([1, 2]);
    });
  });
});
