import { expect } from 'chai';
import { setImmediate as turn } from 'node:timers/promises';
import { StartsFirst } from '../../../scheduler/runs/starts-first.ts';

describe('the order of starts and ends', () => {
  /** What of `wait` has come to pass. */
  const watch = (startsFirst: StartsFirst): { readonly over: boolean } => {
    const seen = { over: false };
    const waiting = startsFirst.wait();
    if (waiting === null) seen.over = true;
    else void waiting.then(() => (seen.over = true));
    return seen;
  };

  it('lets an end be made at once where nothing is started', () => {
    expect(new StartsFirst().wait()).to.equal(null);
  });

  it('puts an end behind the starts that were under way, and not behind later ones', async () => {
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

  it('puts ends behind all that is still decided to be started', async () => {
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

  it('lets go of the ends where what was decided has started nothing more', async () => {
    const startsFirst = new StartsFirst();
    const letEnd = startsFirst.hold();
    const end = watch(startsFirst);
    letEnd();
    await turn();
    expect(end.over).to.equal(true);
  });
});
