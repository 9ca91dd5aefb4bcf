import { pathToFileURL } from 'node:url';
// A CommonJS package without the mark of a default export, which Node gives it.
// oxlint-disable-next-line import/default
import rrulePackage from 'rrule';
import { compileSchedule, type Schedule } from '../../domain/schedule/schedule.ts';

/** What was measured; rates are `next()` calls a second. */
export interface NextFireResult {
  readonly rules: number;
  /** Over the mix of rules, all compiled and their zones known. */
  readonly nextPerSecond: number;
  /** Compiling a rule anew and asking it once. */
  readonly compileAndNextPerSecond: number;
  /** The slowest single `next()`, in milliseconds. */
  readonly slowestMs: number;
  /** The same DAILY rule with a zone, eight months old: ours against the rrule package's `after()`. */
  readonly daily: { readonly ours: number; readonly rrulePackage: number };
}

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

/** Compiles the `index`-th rule of the mix; every other one was set ten years ago. */
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

/** Measures finding the next fire, over a mix of realistic rules. Takes about three seconds. */
export function benchNextFire(count = 1000): NextFireResult {
  const schedules = Array.from({ length: count }, (_, index) => compile(index));
  for (const schedule of schedules) schedule.next(NOW);

  let asked = 0;
  let slowestMs = 0;
  let started = performance.now();
  while (performance.now() - started < 1000) {
    for (const schedule of schedules) {
      const before = performance.now();
      schedule.next(NOW + (asked % 86_400) * 1000);
      slowestMs = Math.max(slowestMs, performance.now() - before);
      asked++;
    }
  }
  const nextPerSecond = rate(asked, started);

  started = performance.now();
  for (let index = 0; index < count; index++) compile(index).next(NOW);
  const compileAndNextPerSecond = rate(count, started);
  return {
    rules: count,
    nextPerSecond,
    compileAndNextPerSecond,
    slowestMs,
    daily: benchDaily(),
  };
}

function benchDaily(): NextFireResult['daily'] {
  const start = new Date(NOW - (YEAR * 8) / 12);
  const ours = compileSchedule({
    kind: 'rrule',
    expr: 'FREQ=DAILY',
    timezone: 'America/New_York',
    anchor: start.getTime(),
    startsAt: null,
    endsAt: null,
  });
  let asked = 0;
  let started = performance.now();
  for (; performance.now() - started < 300; asked++) ours.next(NOW);
  const oursPerSecond = rate(asked, started);

  const { RRule } = rrulePackage;
  const options = { freq: RRule.DAILY, dtstart: start, tzid: 'America/New_York' };
  started = performance.now();
  // A fresh rule each time: the package remembers the answers of one that was asked before.
  for (asked = 0; performance.now() - started < 500; asked++) {
    new RRule(options, true).after(new Date(NOW));
  }
  return { ours: oursPerSecond, rrulePackage: rate(asked, started) };
}

function rate(count: number, started: number): number {
  return Math.round((count / (performance.now() - started)) * 1000);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  console.log(JSON.stringify(benchNextFire(), null, 2));
}
