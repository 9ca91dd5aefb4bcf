import { expect } from 'chai';
import fc from 'fast-check';
import { RRuleTemporal } from 'rrule-temporal';
import { compileSchedule } from '../../../domain/schedule/schedule.ts';

const list = (min: number, max: number, signed = false): fc.Arbitrary<string> =>
  fc
    .uniqueArray(fc.tuple(fc.integer({ min, max }), fc.boolean()), {
      minLength: 1,
      maxLength: 3,
      selector: ([value]) => value,
    })
    .map((items) => items.map(([value, back]) => (signed && back ? -value : value)).join(','));
const names = ['MO', 'TU', 'WE', 'TH', 'FR', 'SA', 'SU'] as const;
const weekdays = fc
  .uniqueArray(fc.constantFrom(...names), { minLength: 1, maxLength: 4 })
  .map(String);
const numbered = fc
  .tuple(fc.constantFrom('1', '2', '3', '4', '-1', '-2'), fc.constantFrom(...names))
  .map(([nth, day]) => `${nth}${day}`);
const maybe = (name: string, value: fc.Arbitrary<string>): fc.Arbitrary<string> =>
  fc.option(value, { nil: null, freq: 1 }).map((text) => (text === null ? '' : `;${name}=${text}`));

/** Rules that RFC 5545 defines without ambiguity and that certainly fire. */
const rules = fc.oneof(
  fc.tuple(
    fc.constant('FREQ=YEARLY'),
    fc.oneof(
      maybe('BYMONTH', list(1, 12)),
      fc
        .tuple(maybe('BYMONTH', list(1, 12)), maybe('BYMONTHDAY', list(1, 28, true)))
        .map((p) => p.join('')),
      fc.tuple(maybe('BYMONTH', list(1, 12)), maybe('BYDAY', weekdays)).map((p) => p.join('')),
      list(1, 365, true).map((days) => `;BYYEARDAY=${days}`),
      fc.tuple(list(2, 51), weekdays).map(([weeks, days]) => `;BYWEEKNO=${weeks};BYDAY=${days}`),
    ),
  ),
  fc.tuple(
    fc.constant('FREQ=MONTHLY'),
    fc.oneof(
      maybe('BYMONTHDAY', list(1, 28, true)),
      maybe('BYDAY', weekdays),
      numbered.map((day) => `;BYDAY=${day}`),
      fc
        .tuple(weekdays, fc.constantFrom('1', '2', '-1', '-2'))
        .map(([d, p]) => `;BYDAY=${d};BYSETPOS=${p}`),
    ),
  ),
  fc.tuple(fc.constant('FREQ=WEEKLY'), maybe('BYDAY', weekdays)),
  fc.tuple(fc.constant('FREQ=DAILY'), maybe('BYMONTH', list(1, 12))),
  fc.tuple(fc.constant('FREQ=HOURLY'), fc.constant('')),
  fc.tuple(fc.constant('FREQ=MINUTELY'), fc.constant('')),
);

describe('a recurrence', () => {
  it('fires as in rrule-temporal, away from clock changes', () => {
    const start = fc
      .integer({ min: Date.UTC(2010, 0, 1) / 60_000, max: Date.UTC(2026, 0, 1) / 60_000 })
      .map((minute) => minute * 60_000);
    const zone = fc.constantFrom('UTC', 'Asia/Kathmandu', 'Pacific/Kiritimati');
    const interval = fc.integer({ min: 1, max: 5 });
    fc.assert(
      fc.property(rules, interval, start, zone, (parts, every, at, timezone) => {
        const local = new Date(at).toISOString().slice(0, 19).replaceAll(/[-:]/g, '');
        const expr =
          `DTSTART;TZID=${timezone}:${local}\n` +
          `RRULE:${parts.join('')};INTERVAL=${every};COUNT=8`;
        const ours = compileSchedule({
          kind: 'rrule',
          expr,
          timezone,
          anchor: 0,
          startsAt: null,
          endsAt: null,
        });
        const theirs = new RRuleTemporal({ rruleString: expr }).all();
        expect(ours.upcoming(0, 20).map((fire) => fire.at)).to.deep.equal(
          theirs.map((fire) => fire.epochMilliseconds),
        );
      }),
      { numRuns: 150 },
    );
  });
});
