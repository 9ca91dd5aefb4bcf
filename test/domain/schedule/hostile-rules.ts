import fc from 'fast-check';
import type { ScheduleKind } from '../../../domain/vocabulary.ts';

/** A rule that a malicious client may send. */
export interface HostileRule {
  readonly kind: ScheduleKind;
  readonly expr: string;
  readonly timezone: string;
  readonly anchor: number;
}

const MAX_CHARACTERS = 4000;
const days = ['MO', 'TU', 'WE', 'TH', 'FR', 'SA', 'SU'];

export const range = (min: number, max: number): number[] =>
  Array.from({ length: max - min + 1 }, (_, index) => min + index);

/** Every number up to a limit, from either end. */
export const bothEnds = (max: number): string =>
  range(1, max)
    .map((number) => `${number},-${number}`)
    .join();

/** A list of numbers: the limits, some, or all. */
function list(min: number, max: number, signed = false): fc.Arbitrary<string> {
  const number = fc.integer({ min, max });
  const some = signed
    ? fc.oneof(
        number,
        number.map((value) => -value),
      )
    : number;
  return fc.oneof(
    fc.constantFrom(String(min), String(max), range(min, max).join()),
    fc.uniqueArray(some, { minLength: 1, maxLength: 4 }).map((values) => values.join()),
    ...(signed ? [fc.constant(bothEnds(max))] : []),
  );
}

const part = (name: string, value: fc.Arbitrary<string>): fc.Arbitrary<string> =>
  fc.option(value, { nil: '', freq: 2 }).map((text) => (text === '' ? '' : `;${name}=${text}`));

const numbered = fc
  .tuple(fc.constantFrom(...days), fc.constantFrom('1', '5', '-5', '53', '-53'))
  .map(([day, nth]) => nth + day);
const weekdays = fc.oneof(
  fc.uniqueArray(fc.constantFrom(...days), { minLength: 1 }).map((names) => names.join()),
  fc.uniqueArray(numbered, { minLength: 1, maxLength: 5 }).map((names) => names.join()),
  fc.constantFrom(...days).map((day) =>
    range(1, 53)
      .flatMap((n) => [`${n}${day}`, `-${n}${day}`])
      .join(),
  ),
);

const interval = fc.oneof(
  fc.constantFrom(
    1,
    2,
    7,
    11,
    13,
    17,
    35,
    61,
    84,
    97,
    365,
    366,
    720,
    773,
    1439,
    1440,
    1441,
    99_999,
  ),
  fc.integer({ min: 1, max: 3000 }),
);
const count = fc.oneof(
  fc.constantFrom(1, 46, 1000, 10_000, 100_000, 1_000_000, 15_000_000, 999_999_999),
  fc.integer({ min: 1, max: 100_000 }),
);

const timezone = fc.constantFrom(
  ...Intl.supportedValuesOf('timeZone'),
  ...new Array<string>(100).fill('UTC'),
);
const year = fc.oneof(fc.integer({ min: 1900, max: 2100 }), fc.integer({ min: 1900, max: 9998 }));
const date = fc
  .tuple(year, fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 28 }))
  .map(([y, m, d]) => `${y}${String(m).padStart(2, '0')}${String(d).padStart(2, '0')}`);
const times = (name: string): fc.Arbitrary<string> =>
  fc.oneof(
    { weight: 4, arbitrary: fc.constant('') },
    fc.array(date, { minLength: 1, maxLength: 150 }).map((all) => `\n${name}:${all.join()}`),
    fc
      .array(fc.tuple(timezone, date), { minLength: 1, maxLength: 60 })
      .map((all) => all.map(([zone, at]) => `\n${name};TZID=${zone}:${at}`).join('')),
  );

const rrule = fc
  .tuple(
    fc.oneof(
      { weight: 2, arbitrary: fc.constant('') },
      date.map((at) => `DTSTART:${at}T013000\n`),
    ),
    fc.constantFrom('YEARLY', 'MONTHLY', 'WEEKLY', 'DAILY', 'HOURLY', 'MINUTELY'),
    part('INTERVAL', interval.map(String)),
    part('COUNT', count.map(String)),
    part('BYMONTH', list(1, 12)),
    part('BYWEEKNO', list(1, 53, true)),
    part('BYYEARDAY', list(1, 366, true)),
    part('BYMONTHDAY', list(1, 31, true)),
    part('BYDAY', weekdays),
    part('BYHOUR', list(0, 23)),
    part('BYMINUTE', list(0, 59)),
    part('BYSECOND', list(0, 59)),
    part('BYSETPOS', list(1, 366, true)),
    times('EXDATE'),
    times('RDATE'),
  )
  .map(([start, freq, ...parts]) => {
    const allowed = parts.filter((text) => {
      if (text.startsWith(';BYWEEKNO')) return freq === 'YEARLY';
      if (text.startsWith(';BYYEARDAY')) return ['YEARLY', 'HOURLY', 'MINUTELY'].includes(freq);
      if (text.startsWith(';BYMONTHDAY')) return freq !== 'WEEKLY';
      if (/^;BYDAY=.*\d/.test(text)) return freq === 'MONTHLY' || freq === 'YEARLY';
      return true;
    });
    return `${start}RRULE:FREQ=${freq}${allowed.join('')}`.slice(0, MAX_CHARACTERS);
  });

const field = (min: number, max: number): fc.Arbitrary<string> =>
  fc.oneof(
    fc.constant('*'),
    fc.integer({ min: 1, max: max - min + 1 }).map((n) => `*/${n}`),
    list(min, max),
  );
const cron = fc
  .tuple(
    field(0, 59),
    field(0, 59),
    field(0, 23),
    fc.oneof(fc.constantFrom('L', '30', '31', '?'), field(1, 31)),
    fc.oneof(fc.constant('2'), field(1, 12)),
    fc.oneof(fc.constantFrom('5L', '1#5', '0#5,2L'), field(0, 6)),
  )
  .map((fields) => fields.join(' '));

const anchor = fc.integer({ min: 0, max: Date.UTC(2101, 0, 1) });

/** Rules with all their parts at the limits, in all zones, from anchors far back and far ahead. */
export const hostileRule: fc.Arbitrary<HostileRule> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constant('rrule' as const), expr: rrule, timezone, anchor }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('cron' as const), expr: cron, timezone, anchor }),
  },
);

/** Instants to query, from before any calendar to the end of it. */
export const anyInstant: fc.Arbitrary<number> = fc.oneof(
  fc.integer({ min: Date.UTC(2020, 0, 1), max: Date.UTC(2040, 0, 1) }),
  fc.integer({ min: -62_135_596_800_000, max: 253_402_300_799_000 }),
);
