import { expect } from 'chai';
import fc from 'fast-check';
import {
  compileSchedule,
  ScheduleError,
  type Fire,
  type Schedule,
} from '../../../domain/schedule/schedule.ts';
import type { ScheduleKind } from '../../../domain/vocabulary.ts';

const DAY = 86_400_000;
const START = Date.UTC(2016, 0, 1);
const NOW = Date.UTC(2026, 0, 1);
/** After the end of the calendar in every zone. */
const END = Date.UTC(10_000, 0, 2);
/** The span from a rule's start in which any COUNT can be counted. */
const COUNTED = 30 * 365 * DAY;

interface Rule {
  readonly kind: ScheduleKind;
  readonly expr: string;
  readonly timezone: string;
  readonly anchor: number;
}

function compile(rule: Rule, bounds: { startsAt?: number; endsAt?: number } = {}): Schedule {
  return compileSchedule({ startsAt: null, endsAt: null, ...rule, ...bounds });
}

/** A fire as plain data, because deep equality does not compare getters of a class. */
function read(fire: Fire | null): Fire | null {
  return fire === null ? null : readFire(fire);
}
const readFire = ({ at, local, note }: Fire): Fire => ({ at, local, note });

/** As {@link Schedule.upcoming}, as plain data. */
function upcoming(schedule: Schedule, after: number, count: number): Fire[] {
  return schedule.upcoming(after, count).map(readFire);
}

const list = (min: number, max: number): fc.Arbitrary<string> =>
  fc.uniqueArray(fc.integer({ min, max }), { minLength: 1, maxLength: 3 }).map(String);
const timezone = fc.constantFrom(
  'UTC',
  'America/New_York',
  'Europe/Berlin',
  'Australia/Lord_Howe',
  'Asia/Kathmandu',
  'Pacific/Kiritimati',
  'America/Sao_Paulo',
);
const cronField = (min: number, max: number): fc.Arbitrary<string> =>
  fc.oneof(
    fc.constant('*'),
    fc.integer({ min: 1, max: 12 }).map((step) => `*/${step}`),
    list(min, max),
  );
const cron = fc
  .tuple(
    fc.oneof(cronField(0, 59), list(0, 59)),
    cronField(0, 23),
    fc.oneof(fc.constantFrom('*', 'L'), cronField(1, 28)),
    cronField(1, 12),
    fc.oneof(fc.constantFrom('*', '5L', '1#2'), list(0, 7)),
  )
  .map((fields) => fields.join(' '));
const part = (name: string, value: fc.Arbitrary<string>): fc.Arbitrary<string> =>
  fc.option(value, { nil: null }).map((text) => (text === null ? '' : `;${name}=${text}`));
const weekdays = fc
  .uniqueArray(fc.constantFrom('MO', 'TU', 'WE', 'TH', 'FR', 'SA', 'SU'), { minLength: 1 })
  .map(String);
/** Recurrences without an end. */
const rrule = fc
  .tuple(
    fc.constantFrom('YEARLY', 'MONTHLY', 'WEEKLY', 'DAILY', 'HOURLY', 'MINUTELY'),
    fc.integer({ min: 1, max: 20 }),
    part('BYMONTH', list(1, 12)),
    part('BYDAY', weekdays),
    part('BYHOUR', list(0, 23)),
    part('BYMINUTE', list(0, 59)),
    fc.constantFrom('', '', ';BYSETPOS=1', ';BYSETPOS=-1'),
  )
  .filter(([, , ...by]) => by[4] === '' || by.slice(0, 4).some((text) => text !== ''))
  .map(([freq, interval, ...by]) => `FREQ=${freq};INTERVAL=${interval}${by.join('')}`);
const anchor = fc.integer({ min: START / 1000, max: NOW / 1000 }).map((second) => second * 1000);
const rule: fc.Arbitrary<Rule> = fc.oneof(
  fc.record({ kind: fc.constant('cron' as const), expr: cron, timezone, anchor }),
  fc.record({ kind: fc.constant('rrule' as const), expr: rrule, timezone, anchor }),
);
const instant = fc.integer({ min: START, max: NOW + 800 * DAY });
const runs = { numRuns: 120 };

describe('any schedule', () => {
  it('has fires that strictly increase, on whole seconds', () => {
    fc.assert(
      fc.property(rule, instant, (given, from) => {
        let last = from;
        for (const { at } of compile(given).upcoming(from, 40)) {
          expect(at).to.be.above(last);
          expect(at % 1000).to.equal(0);
          last = at;
        }
      }),
      runs,
    );
  });

  it('has the same fires one by one, in bulk, backwards, counted, and compiled again', () => {
    fc.assert(
      fc.property(rule, instant, (given, from) => {
        const schedule = compile(given);
        const fires = upcoming(schedule, from, 25);
        let cursor = from;
        fires.forEach((fire, index) => {
          const middle = cursor + Math.floor((fire.at - cursor) / 2);
          expect(read(schedule.next(middle))).to.deep.equal(fire);
          expect(read(compile(given).next(cursor))).to.deep.equal(fire);
          expect(schedule.countBetween(from, fire.at)).to.deep.equal({
            count: index + 1,
            first: fires[0]?.at,
            last: fire.at,
          });
          const before = read(schedule.previous(fire.at));
          if (index > 0) expect(before).to.deep.equal(fires[index - 1]);
          else if (before !== null) expect(before.at).to.be.at.most(from);
          cursor = fire.at;
        });
      }),
      runs,
    );
  });

  it('has the same fires today as when followed from ten years ago', () => {
    const slow = fc.oneof(
      fc
        .constantFrom('0 9 * * 1', '30 2 * * *', '0 */6 1 * *')
        .map((expr) => ['cron', expr] as const),
      fc
        .constantFrom(
          'FREQ=DAILY;INTERVAL=3',
          'FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,FR',
          'FREQ=MONTHLY;BYDAY=-1FR',
          'FREQ=HOURLY;INTERVAL=17',
        )
        .map((expr) => ['rrule', expr] as const),
    );
    fc.assert(
      fc.property(slow, timezone, ([kind, expr], zone) => {
        const schedule = compile({ kind, expr, timezone: zone, anchor: START });
        const followed = schedule.upcoming(START, 6000);
        const from = followed.length - 20;
        expect(upcoming(schedule, followed[from - 1]?.at ?? NaN, 20)).to.deep.equal(
          followed.slice(from).map(readFire),
        );
      }),
      { numRuns: 20 },
    );
  });

  it('counts as many fires as it lists', () => {
    fc.assert(
      fc.property(rule, instant, fc.integer({ min: 0, max: 40 * DAY }), (given, from, span) => {
        const schedule = compile(given);
        const fires = schedule.upcoming(from, 500).filter((fire) => fire.at <= from + span);
        fc.pre(fires.length < 500);
        expect(schedule.countBetween(from, from + span)).to.deep.equal({
          count: fires.length,
          first: fires[0]?.at ?? null,
          last: fires.at(-1)?.at ?? null,
        });
      }),
      runs,
    );
  });

  it('fires from starts_at to ends_at, both included, and is otherwise the same', () => {
    fc.assert(
      fc.property(rule, instant, (given, from) => {
        const fires = upcoming(compile(given), from, 10);
        const [first, last] = [fires[2], fires[7]];
        if (first === undefined || last === undefined) return;
        const bounded = compile(given, { startsAt: first.at, endsAt: last.at });
        expect(upcoming(bounded, from, 20)).to.deep.equal(fires.slice(2, 8));
        expect(bounded.previous(first.at)).to.equal(null);
        expect(read(bounded.previous(NOW + 1_000_000 * DAY))).to.deep.equal(last);
        expect(bounded.countBetween(0, NOW + 1_000_000 * DAY).count).to.equal(6);
      }),
      runs,
    );
  });

  it('with COUNT n has n fires', () => {
    fc.assert(
      fc.property(rrule, timezone, anchor, fc.integer({ min: 1, max: 60 }), (expr, zone, at, n) => {
        const given = { kind: 'rrule', timezone: zone, anchor: at } as const;
        const endless = compile({ ...given, expr });
        let counted: Schedule;
        try {
          counted = compile({ ...given, expr: `${expr};COUNT=${n}` });
          if (counted.warnings.some((text) => text.includes('too large to count'))) {
            expect(endless.countBetween(at - 1, at + COUNTED).count).to.be.below(n);
            return;
          }
        } catch (error) {
          // Refused only if it exceeds the guaranteed span.
          if (!(error instanceof ScheduleError)) throw error;
          expect(endless.countBetween(at - 1, at + COUNTED).count).to.be.below(n);
          return;
        }
        expect(upcoming(counted, at - 1, n + 5)).to.deep.equal(upcoming(endless, at - 1, n));
      }),
      runs,
    );
  });

  it('with a large COUNT has that many fires, or all there are', () => {
    fc.assert(
      fc.property(
        rrule,
        fc.oneof(timezone, fc.constantFrom('Pacific/Apia', 'Pacific/Kwajalein')),
        fc.integer({ min: Date.UTC(1990, 0, 1) / 1000, max: NOW / 1000 }),
        fc.integer({ min: 1, max: 20_000 }),
        (expr, zone, second, n) => {
          const start = second * 1000;
          const given = { kind: 'rrule', timezone: zone, anchor: start } as const;
          const endless = compile({ ...given, expr });
          let last: Fire | null;
          try {
            const bounded = compile({ ...given, expr: `${expr};COUNT=${n}` });
            // Too large a COUNT is ignored, and only beyond the guaranteed span.
            if (bounded.warnings.some((text) => text.includes('too large to count'))) {
              expect(endless.countBetween(start - 1, start + COUNTED).count).to.be.below(n);
              return;
            }
            last = bounded.previous(END);
          } catch (error) {
            if (!(error instanceof ScheduleError)) throw error;
            expect(endless.countBetween(start - 1, start + COUNTED).count).to.be.below(n);
            return;
          }
          const counted = endless.countBetween(start - 1, last?.at ?? END).count;
          if (endless.next(last?.at ?? END) === null) expect(counted).to.be.at.most(n);
          else expect(counted).to.equal(n);
        },
      ),
      {
        ...runs,
        // The first has a rule for each offset, the second jumps over months without fires, and the
        // third counts times of day one by one.
        examples: [
          [
            'FREQ=HOURLY;INTERVAL=3;BYMONTH=1',
            'America/New_York',
            Date.UTC(1990, 0, 1) / 1000,
            6697,
          ],
          ['FREQ=HOURLY;INTERVAL=3;BYMONTH=9,10', 'Pacific/Apia', 1_180_519_200, 10_726],
          [
            'FREQ=MINUTELY;INTERVAL=7;BYHOUR=0;BYMINUTE=0,1',
            'America/New_York',
            Date.UTC(1990, 0, 1) / 1000,
            2971,
          ],
        ],
      },
    );
  });

  it('depends on its anchor, not on the time of the query', () => {
    fc.assert(
      fc.property(
        rrule,
        timezone,
        anchor,
        fc.integer({ min: 0, max: 999 }),
        (expr, zone, at, ms) => {
          const given = { kind: 'rrule', expr, timezone: zone } as const;
          const whole = upcoming(compile({ ...given, anchor: at }), at, 5);
          // The anchor is truncated to the second.
          expect(upcoming(compile({ ...given, anchor: at + ms }), at, 5)).to.deep.equal(whole);
        },
      ),
      { numRuns: 100 },
    );
  });
});

describe('a schedule at the end of the calendar', () => {
  it('has no fire after the year 9999 in UTC, since no timestamp could express it', () => {
    const last = Date.UTC(9999, 0, 1, 10);
    for (const [kind, expr] of [
      ['cron', '0 23 31 12 *'],
      ['rrule', 'DTSTART:20261231T230000\nRRULE:FREQ=YEARLY'],
    ] as const) {
      const schedule = compile({ kind, expr, timezone: 'Pacific/Niue', anchor: START });
      expect(schedule.next(last - 1)?.local).to.equal('9998-12-31T23:00:00-11:00');
      expect(schedule.next(last), expr).to.equal(null);
      expect(schedule.previous(END)?.at).to.equal(last);
      expect(schedule.countBetween(last, END).count).to.equal(0);
    }
  });
});

describe('a recurrence anchored in a repeated hour', () => {
  it('begins at its anchor and fires in the rest of both passes', () => {
    // 01:40 EDT, twenty minutes before the clock goes back to 01:00 EST.
    const first = compile({
      kind: 'rrule',
      expr: 'FREQ=MINUTELY;INTERVAL=20',
      timezone: 'America/New_York',
      anchor: Date.UTC(2026, 10, 1, 5, 40),
    });
    expect(first.upcoming(0, 4).map((fire) => fire.local)).to.deep.equal([
      '2026-11-01T01:40:00-04:00',
      '2026-11-01T01:00:00-05:00',
      '2026-11-01T01:20:00-05:00',
      '2026-11-01T01:40:00-05:00',
    ]);
  });

  it('has no fire before an anchor in the second pass', () => {
    const second = compile({
      kind: 'rrule',
      expr: 'FREQ=DAILY',
      timezone: 'America/New_York',
      anchor: Date.UTC(2026, 10, 1, 6, 30),
    });
    expect(second.upcoming(0, 1).map((fire) => fire.local)).to.deep.equal([
      '2026-11-02T01:30:00-05:00',
    ]);
  });
});
