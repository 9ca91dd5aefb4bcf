import { expect } from 'chai';
import fc from 'fast-check';
import {
  compileSchedule,
  MAX_COMPILE_STEPS,
  ScheduleError,
  type Schedule,
} from '../../../domain/schedule/schedule.ts';
import { limitWork, WorkLimitError } from '../../../domain/schedule/work-limit.ts';
import { anyInstant, bothEnds, hostileRule, range, type HostileRule } from './hostile-rules.ts';
import { longVersions } from '../../support/left-out.ts';

const DAY = 86_400_000;
const NOW = Date.UTC(2026, 10, 21, 9);
const at = (year: number): number => new Date(0).setUTCFullYear(year);
const sixty = range(0, 59).join();
const hours = range(0, 23).join();
/** The most work steps of a query, about 8 ms. A count takes as many for each forty years of clock changes. */
const MAX_QUERY_STEPS = 800_000;
/** How far one step may exceed the limit that it is checked against. */
const ONE_STEP = 25_000;

const newYork = 'America/New_York';

/**
 * Rules for which other evaluators take seconds or forever, and the slowest ones found here before their kind of work
 * was bounded.
 */
const worst: readonly (readonly [string, string?, number?])[] = [
  ['FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30'],
  ['FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30'],
  ['FREQ=DAILY;INTERVAL=2;BYMONTH=2;BYMONTHDAY=30'],
  ['FREQ=MINUTELY;INTERVAL=7;BYMONTH=2;BYMONTHDAY=30'],
  ['FREQ=MINUTELY;INTERVAL=7;BYHOUR=3;BYMINUTE=7;BYDAY=SU;BYMONTH=2;BYMONTHDAY=29'],
  ['FREQ=HOURLY;INTERVAL=84;BYDAY=SU;BYHOUR=5'],
  ['FREQ=HOURLY;INTERVAL=365;BYMONTH=2;BYMONTHDAY=29;BYHOUR=1'],
  ['FREQ=YEARLY;BYWEEKNO=53;BYMONTH=6;BYDAY=MO'],
  ['FREQ=YEARLY;BYWEEKNO=53;BYMONTH=6;BYDAY=MO;BYSETPOS=1'],
  ['FREQ=YEARLY;INTERVAL=3;BYYEARDAY=366;BYMONTH=1'],
  ['FREQ=MONTHLY;BYDAY=MO;BYSETPOS=6'],
  ['FREQ=MONTHLY;INTERVAL=7;BYDAY=MO;BYMONTHDAY=1,2;BYSETPOS=2'],
  ['FREQ=DAILY;INTERVAL=99999'],
  ['FREQ=DAILY;INTERVAL=365;BYMONTH=6'],
  ['FREQ=DAILY;INTERVAL=35;BYDAY=SU,MO,TU,WE,TH,FR'],
  [`FREQ=HOURLY;INTERVAL=408;BYYEARDAY=235,34,-256,191;BYMONTHDAY=31`, 'Europe/Belgrade'],
  [`FREQ=MINUTELY;INTERVAL=84;BYYEARDAY=${bothEnds(366)};BYMONTHDAY=31;BYDAY=MO`],
  ['FREQ=HOURLY;INTERVAL=1440;BYDAY=MO,TU,SA;BYHOUR=23;BYSECOND=14,33', 'Pacific/Enderbury'],
  [`FREQ=DAILY;INTERVAL=59;BYHOUR=${hours};BYSETPOS=334`, 'Asia/Magadan'],
  [
    `FREQ=YEARLY;INTERVAL=37;BYDAY=${range(1, 53)
      .map((n) => `${n}MO,-${n}MO`)
      .join()};BYMONTHDAY=31;BYYEARDAY=1`,
  ],
  [`FREQ=YEARLY;BYWEEKNO=${bothEnds(53)};BYYEARDAY=${bothEnds(200)};BYSETPOS=${bothEnds(150)}`],
  [`FREQ=YEARLY;BYWEEKNO=1;BYMONTHDAY=${range(1, 31).join()};BYSETPOS=109,179,263`],
  [`FREQ=YEARLY;BYDAY=MO;BYMINUTE=${sixty};BYSECOND=${sixty};BYSETPOS=366`],
  [`FREQ=MINUTELY;INTERVAL=8;BYSECOND=${sixty}`],
  [`FREQ=HOURLY;BYMINUTE=${sixty};BYSECOND=${sixty}`],
  [`FREQ=HOURLY;INTERVAL=5;BYMINUTE=${sixty};BYSECOND=${sixty};BYDAY=MO`],
  ['FREQ=MINUTELY;INTERVAL=1439;BYSECOND=1'],
  // Intervals in real time with BY-parts in wall time.
  ['FREQ=HOURLY;INTERVAL=168;BYDAY=MO'],
  ['FREQ=HOURLY;INTERVAL=168;BYDAY=SU;BYMONTH=7', newYork, Date.UTC(2026, 0, 5, 3)],
  ['FREQ=HOURLY;INTERVAL=8760;BYMONTH=2;BYMONTHDAY=29'],
  ['FREQ=HOURLY;INTERVAL=8760;BYMONTH=2;BYMONTHDAY=30', 'Africa/Casablanca'],
  ['FREQ=HOURLY;INTERVAL=99999;BYDAY=MO;BYMONTH=2;BYMONTHDAY=29', 'Europe/London', at(1900)],
  ['FREQ=HOURLY;INTERVAL=365;BYMONTH=2;BYMONTHDAY=29;BYMINUTE=1', 'Europe/Lisbon', at(1900)],
  ['FREQ=MINUTELY;INTERVAL=1439;BYMONTHDAY=31;BYDAY=MO;BYMONTH=2', 'Australia/Lord_Howe'],
  ['FREQ=MINUTELY;INTERVAL=10080;BYDAY=TU;COUNT=1000000', 'America/Havana'],
  [`FREQ=HOURLY;INTERVAL=5;BYMINUTE=${sixty};BYSECOND=${sixty};BYYEARDAY=366`, 'Asia/Gaza'],
  // Counts.
  ['FREQ=HOURLY;INTERVAL=9;BYMONTH=1;BYDAY=MO;BYHOUR=0;COUNT=46', newYork],
  ['FREQ=MONTHLY;BYDAY=MO,TU;BYSETPOS=2;COUNT=999999'],
  ['FREQ=DAILY;COUNT=1000000'],
  ['FREQ=DAILY;BYHOUR=2,3;COUNT=30000'],
  ['FREQ=DAILY;INTERVAL=72;COUNT=10000'],
  ['FREQ=DAILY;INTERVAL=365;COUNT=1000;BYMONTH=6', 'America/Montserrat'],
  ['FREQ=WEEKLY;BYDAY=MO,TU;BYMONTH=2;BYSETPOS=1;COUNT=10000'],
  ['FREQ=WEEKLY;COUNT=100000;BYMONTH=1,2,3,4,5,6,7,8,9,10,11,12', 'Indian/Comoro'],
  ['FREQ=WEEKLY;INTERVAL=3;COUNT=10000000', 'Europe/Minsk'],
  ['FREQ=MINUTELY;INTERVAL=773;COUNT=10000000;BYSECOND=36,27', 'Australia/Lord_Howe', at(1970)],
  ['FREQ=HOURLY;INTERVAL=2536;COUNT=1000000;BYHOUR=12,19,1', 'America/Noronha', at(2099)],
  ['FREQ=HOURLY;COUNT=400000', 'Africa/Casablanca'],
  [`FREQ=YEARLY;COUNT=17894;BYWEEKNO=${range(1, 53).join()};BYSETPOS=${bothEnds(366)}`],
  [
    `FREQ=YEARLY;COUNT=70934;BYYEARDAY=366;BYDAY=${range(1, 53)
      .map((n) => `${n}TU,-${n}TU`)
      .join()}`,
  ],
  [`FREQ=MINUTELY;INTERVAL=37;COUNT=82479;BYYEARDAY=${range(1, 366).join()}`, 'America/Detroit'],
  ['FREQ=DAILY;COUNT=20000', 'Pacific/Apia', at(1990)],
  ['DTSTART:19000101T000000\nRRULE:FREQ=DAILY;COUNT=999999999'],
  ['DTSTART:19000101T000000\nRRULE:FREQ=WEEKLY;BYDAY=MO,TU;BYSETPOS=1;COUNT=10000'],
  ['DTSTART:19700101T000000Z\nRRULE:FREQ=MINUTELY;COUNT=999999999'],
  ['DTSTART;TZID=America/New_York:20000101T000000\nRRULE:FREQ=MINUTELY;COUNT=15000000'],
  // Times that are added and removed.
  [
    `FREQ=WEEKLY;INTERVAL=99999\nRDATE:${range(2000, 2420)
      .map((n) => `${2000 + ((n * 1237) % 7999)}0106`)
      .join()}`,
  ],
  [
    `FREQ=YEARLY;BYMONTH=6;BYMONTHDAY=1\nEXDATE:${range(2026, 2440)
      .map((n) => `${n}0601`)
      .join()}`,
  ],
  [
    `FREQ=DAILY\nEXDATE:${range(0, 420)
      .map((n) => `${2000 + ((n * 37) % 100)}0601`)
      .join()}`,
  ],
  ...['EXDATE', 'RDATE'].map((name): readonly [string] => {
    const zones = Intl.supportedValuesOf('timeZone').slice(0, 100);
    return [`FREQ=DAILY${zones.map((zone) => `\n${name};TZID=${zone}:20260601`).join('')}`];
  }),
];

/** Each query has no cached results of earlier ones. */
function expectBounded(rule: HostileRule, from: number): void {
  const compiled = (): Schedule => compileSchedule({ ...rule, startsAt: null, endsAt: null });
  const within = (limit: number, question: string, ask: () => unknown): void => {
    try {
      limitWork(limit + ONE_STEP, ask);
    } catch (error) {
      if (!(error instanceof WorkLimitError)) throw error;
      expect.fail(`${question} of ${JSON.stringify(rule)} at ${from} ${error.message}`);
    }
  };
  try {
    within(MAX_COMPILE_STEPS, 'compile', compiled);
  } catch (error) {
    // A refusal is fine too. It comes when the limit is reached.
    if (!(error instanceof ScheduleError)) throw error;
    return;
  }
  const questions: readonly [string, (schedule: Schedule) => unknown][] = [
    ['next', (schedule) => schedule.next(from)],
    ['previous', (schedule) => schedule.previous(from)],
    [
      'countBetween',
      (schedule) => schedule.countBetween(from - 5 * 365 * DAY, from + 5 * 365 * DAY),
    ],
  ];
  for (const [name, ask] of questions) {
    const schedule = compiled();
    within(MAX_QUERY_STEPS, name, () => ask(schedule));
  }
}

/** The lowest limit under which some work completes. */
function fewestSteps(work: () => unknown): number {
  let low = 0;
  let high = MAX_COMPILE_STEPS;
  while (low < high) {
    const limit = Math.floor((low + high) / 2);
    try {
      limitWork(limit, work);
      high = limit;
    } catch (error) {
      if (!(error instanceof ScheduleError)) throw error;
      low = limit + 1;
    }
  }
  return low;
}

describe('evaluating a rule stays within the work limit', () => {
  for (const [expr, timezone = newYork, anchor = NOW - 1] of worst) {
    it(`for ${JSON.stringify(expr).slice(1, 90)} in ${timezone}`, () => {
      for (const from of [NOW, NOW + 100 * DAY, at(1), at(2110), at(9998)]) {
        expectBounded({ kind: 'rrule', expr, timezone, anchor }, from);
      }
    });
  }

  for (const expr of [
    '0 0 30 2 *',
    '0 0 31 2,4,6,9,11 *',
    '* * * * * *',
    '0 0 29 2 0#5',
    '0 0 L 2 1#5',
  ]) {
    it(`for cron ${expr}`, () => {
      for (const from of [NOW, at(1), at(2110), at(9998)]) {
        expectBounded({ kind: 'cron', expr, timezone: newYork, anchor: NOW }, from);
      }
    });
  }

  it('for any parts', () => {
    const numRuns = longVersions() ? 20_000 : 150;
    fc.assert(fc.property(hostileRule, anyInstant, expectBounded), { numRuns });
  }).timeout(600_000);

  it('for an expression with a long run of spaces', () => {
    // Searching from each space would take quadratic time.
    const spaces = ' '.repeat(200_000);
    const expr = `RRULE:FREQ=DAILY${spaces}EXDATE:20260601T090000${spaces}X`;
    const spec = {
      kind: 'rrule',
      expr,
      timezone: 'UTC',
      anchor: NOW,
      startsAt: null,
      endsAt: null,
    } as const;
    expect(() => compileSchedule(spec)).to.throw(ScheduleError);
  });

  it('independently of cached zone data', () => {
    const expr = 'DTSTART:19300101T000000\nRRULE:FREQ=DAILY;BYHOUR=1,2,3;COUNT=400000';
    const spec = {
      kind: 'rrule',
      expr,
      timezone: 'Europe/Berlin',
      anchor: NOW,
      startsAt: null,
      endsAt: null,
    } as const;
    const issue = (): string => {
      try {
        compileSchedule(spec);
      } catch (error) {
        return (error as Error).message;
      }
      return 'accepted';
    };
    const first = issue();
    expect(first).to.contain('COUNT=400000 takes too long to count');
    expect(issue()).to.equal(first);
    const accepted = { ...spec, expr: 'FREQ=DAILY;BYHOUR=2,3;COUNT=9999' };
    const steps = fewestSteps(() => compileSchedule(accepted));
    expect(steps).to.be.above(0);
    expect(fewestSteps(() => compileSchedule(accepted))).to.equal(steps);
  });
});

describe('a count of fires', () => {
  it('over ten years takes no longer for a rule that fires every second', () => {
    const expr = '* * * * * *';
    const schedule = compileSchedule({
      kind: 'cron',
      expr,
      timezone: 'UTC',
      anchor: NOW,
      startsAt: null,
      endsAt: null,
    });
    const from = Date.UTC(2016, 0, 1);
    const to = Date.UTC(2026, 0, 1);
    const result = limitWork(10_000, () => schedule.countBetween(from, to));
    expect(result).to.deep.equal({ count: (to - from) / 1000, first: from + 1000, last: to });
  });
});
