import { expect } from 'chai';
import fc from 'fast-check';
import { fromIso, toIso } from '../../domain/clock.ts';

describe('the text of an instant', () => {
  const seconds = fc.integer({ min: -70_000_000_000, max: 260_000_000_000 });

  it('is what JavaScript says of it, whatever was asked before', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(seconds, fc.integer({ min: 0, max: 999 })), { maxLength: 50 }),
        (moments) => {
          for (const [second, ms] of moments) {
            // Also of one that shares its second, and of one that shares its place among those that are kept.
            for (const instant of [second * 1000 + ms, second * 1000, (second + 64) * 1000 + ms]) {
              expect(toIso(instant)).to.equal(new Date(instant).toISOString());
            }
          }
        },
      ),
    );
  });

  it('gives the instant back', () => {
    fc.assert(fc.property(seconds, (at) => fromIso(toIso(at)) === at));
  });

  it('leaves out parts of milliseconds', () => {
    expect(toIso(1_800_000_000_000.75)).to.equal('2027-01-15T08:00:00.000Z');
  });

  it('is none of what is no instant', () => {
    for (const none of [Number.NaN, Infinity, 9e15]) {
      expect(() => toIso(none)).to.throw(RangeError);
    }
  });
});
