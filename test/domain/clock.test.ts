import { expect } from 'chai';
import fc from 'fast-check';
import { fromIso, toIso } from '../../domain/clock.ts';

describe('the timestamp of an instant', () => {
  const seconds = fc.integer({ min: -70_000_000_000, max: 260_000_000_000 });

  it('is what JavaScript writes, whatever was converted before', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(seconds, fc.integer({ min: 0, max: 999 })), { maxLength: 50 }),
        (instants) => {
          for (const [second, ms] of instants) {
            // Also an instant in the same second, and one with the same slot in the cache.
            for (const instant of [second * 1000 + ms, second * 1000, (second + 64) * 1000 + ms]) {
              expect(toIso(instant)).to.equal(new Date(instant).toISOString());
            }
          }
        },
      ),
    );
  });

  it('can be converted back to the instant', () => {
    fc.assert(fc.property(seconds, (at) => fromIso(toIso(at)) === at));
  });

  it('is read as JavaScript reads it', () => {
    const minutes = [
      '2026-11-22T09:30:',
      '2026-11-22T24:00:',
      '2026-02-30T09:30:',
      '2026-11-22 09:30:',
    ];
    const ends = [
      '00.000Z',
      '15.042Z',
      '59.999Z',
      '60.000Z',
      '1a.000Z',
      '15.042z',
      '15,042Z',
      '15Z',
      '',
    ];
    const texts = fc.tuple(fc.constantFrom(...minutes), fc.constantFrom(...ends));
    fc.assert(
      fc.property(fc.array(texts, { maxLength: 20 }), (parts) => {
        for (const part of parts)
          expect(fromIso(part.join(''))).to.deep.equal(Date.parse(part.join('')));
      }),
    );
  });

  it('leaves out parts of milliseconds', () => {
    expect(toIso(1_800_000_000_000.75)).to.equal('2027-01-15T08:00:00.000Z');
  });

  it('does not exist for an invalid instant', () => {
    for (const none of [Number.NaN, Infinity, 9e15]) {
      expect(() => toIso(none)).to.throw(RangeError);
    }
  });
});
