// A CommonJS package; Node provides its default export.
// oxlint-disable-next-line import/default
import rrulePackage from 'rrule';
import { compileSchedule, type Schedule } from '../../domain/schedule/schedule.ts';
import { atLeast, type Benchmark } from '../benchmark.ts';

const NOW = Date.UTC(2026, 10, 21, 9, 30, 15);
const YEAR = 365.25 * 86_400_000;
const timezones = [
  'UTC',
  'America/New_York',
  'Europe/Berlin',
  'Asia/Kolkata',
  'Australia/Lord_Howe',
  'America/Sao_Paulo',
  'Asia/Tokyo',
  'Pacific/Kiritimati',
];
const rules: readonly ['cron' | 'rrule', string][] = [
  ['cron', '*/5 * * * *'],
  ['cron', '0 9 * * MON-FRI'],
  ['cron', '30 2 1 * *'],
  ['cron', '0 0 L * *'],
  ['cron', '15 6 * * 1#2'],
  ['cron', '*/10 * * * * *'],
  ['cron', '0 */6 * * *'],
  ['cron', '0 12 1 1,7 *'],
  ['rrule', 'FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0'],
  ['rrule', 'FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,WE,FR'],
  ['rrule', 'FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=17'],
  ['rrule', 'FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1'],
  ['rrule', 'FREQ=YEARLY;BYMONTH=3;BYMONTHDAY=31'],
  ['rrule', 'FREQ=HOURLY;INTERVAL=5'],
  ['rrule', 'FREQ=MINUTELY;INTERVAL=7'],
  ['rrule', 'FREQ=MINUTELY;INTERVAL=15;BYHOUR=8,9,10;BYDAY=MO,TU'],
  ['rrule', 'FREQ=DAILY;INTERVAL=3;COUNT=5000'],
];

/** Compiles a rule of the mix; every other one has an anchor ten years ago. */
function compile(index: number): Schedule {
  const [kind, expr] = rules[index % rules.length] ?? ['cron', '* * * * *'];
  return compileSchedule({
    kind,
    expr,
    timezone: timezones[index % timezones.length] ?? 'UTC',
    anchor: NOW - (index % 2 === 0 ? 10 * YEAR : 0) - index * 61_000,
    startsAt: null,
    endsAt: null,
  });
}

const RULES = 1_000;

/**
 * Measures how fast the next fire is found: for a mix of realistic rules, and for a DAILY rule beside the rrule
 * package.
 */
export const nextFire: Benchmark = {
  targets: [atLeast('next/s', 5_000), atLeast('daily over rrule', 10, 'beside the package')],
  count: () => RULES,
  async measure() {
    const schedules = Array.from({ length: RULES }, (_, index) => compile(index));
    for (const schedule of schedules) schedule.next(NOW);
    let slowestMs = 0;
    const next = ratePerSecond(1000, (call) => {
      const start = performance.now();
      schedules[call % RULES]?.next(NOW + (call % 86_400) * 1000);
      slowestMs = Math.max(slowestMs, performance.now() - start);
    });
    const start = performance.now();
    for (let index = 0; index < RULES; index += 1) compile(index).next(NOW);
    const compileAndNext = Math.round((RULES / (performance.now() - start)) * 1000);
    const { ours, theirs } = measureDaily();
    return {
      'next/s': next,
      'compile and next/s': compileAndNext,
      'slowest ms': slowestMs,
      'daily next/s': ours,
      'daily next/s of rrule': theirs,
      'daily over rrule': ours / theirs,
    };
  },
};

/** The same DAILY rule with a zone, eight months old: our `next()` and the package's `after()`. */
function measureDaily(): { readonly ours: number; readonly theirs: number } {
  const start = new Date(NOW - (YEAR * 8) / 12);
  const timezone = 'America/New_York';
  const rule = { kind: 'rrule', expr: 'FREQ=DAILY', timezone } as const;
  const bounds = { anchor: start.getTime(), startsAt: null, endsAt: null };
  const schedule = compileSchedule({ ...rule, ...bounds });
  const ours = ratePerSecond(300, () => schedule.next(NOW));
  const { RRule } = rrulePackage;
  const options = { freq: RRule.DAILY, dtstart: start, tzid: timezone };
  // A new rule each time, because the package caches its results.
  const theirs = ratePerSecond(500, () => new RRule(options, true).after(new Date(NOW)));
  return { ours, theirs };
}

/** Calls a second, over the given number of milliseconds. */
function ratePerSecond(milliseconds: number, work: (call: number) => unknown): number {
  const start = performance.now();
  let calls = 0;
  for (; performance.now() - start < milliseconds; calls += 1) work(calls);
  return Math.round((calls / (performance.now() - start)) * 1000);
}
