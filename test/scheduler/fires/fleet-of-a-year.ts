import type { TaskDefinition } from '../../../domain/tasks/task-definition.ts';
import {
  elapsedFires,
  fixedFires,
  instantOf,
  type CalendarDay,
  type FixedRule,
} from '../../support/expected-calendar.ts';

/** The year that the fleet runs, from the creation of all its tasks. */
export const YEAR = {
  from: Date.parse('2026-01-01T00:00:00.000Z'),
  to: Date.parse('2027-01-01T00:00:00.000Z'),
} as const;

/** A task and its expected fires. */
export interface Sailing {
  readonly id: string;
  readonly fields: Partial<TaskDefinition>;
  /** The nominal times up to an instant. */
  readonly expected: (upTo: number) => readonly number[];
}

const daily = (): boolean => true;
const on =
  (...weekdays: readonly number[]) =>
  ({ weekday }: CalendarDay): boolean =>
    weekdays.includes(weekday);
const ofMonth =
  (...days: readonly number[]) =>
  ({ day }: CalendarDay): boolean =>
    days.includes(day);
const last = ({ day, length }: CalendarDay): boolean => day === length;
const weekdays = on(1, 2, 3, 4, 5);

const newYork = 'America/New_York';
const berlin = 'Europe/Berlin';
const lordHowe = 'Australia/Lord_Howe';
const saoPaulo = 'America/Sao_Paulo';
const kathmandu = 'Asia/Kathmandu';
const kiritimati = 'Pacific/Kiritimati';

const fixed = (zone: string, rule: Omit<FixedRule, 'zone'>): Sailing['expected'] => {
  const whole = fixedFires({ zone, ...rule }, YEAR.from, YEAR.to);
  return (upTo) => whole.filter((at) => at <= upTo);
};

/** Cron with fixed hours: the expression, its zone, and the same in days and times. */
const cronTasks: readonly (readonly [expr: string, zone: string, rule: Omit<FixedRule, 'zone'>])[] =
  [
    // In the gap of spring, and in the hour that comes twice in autumn.
    ['30 2 * * *', newYork, { on: daily, times: ['02:30'] }],
    ['30 1 * * *', newYork, { on: daily, times: ['01:30'] }],
    ['0 9 * * MON-FRI', newYork, { on: weekdays, times: ['09:00'] }],
    ['0 0 1 * *', newYork, { on: ofMonth(1), times: ['00:00'] }],
    ['15 2 * * SUN', newYork, { on: on(0), times: ['02:15'] }],
    ['0 9,17 * * 1,3,5', newYork, { on: on(1, 3, 5), times: ['09:00', '17:00'] }],
    ['30 2 * * *', berlin, { on: daily, times: ['02:30'] }],
    ['0 3 * * *', berlin, { on: daily, times: ['03:00'] }],
    ['0,30 2 * * SUN', berlin, { on: on(0), times: ['02:00', '02:30'] }],
    ['45 23 L * *', berlin, { on: last, times: ['23:45'] }],
    [
      '0 12 29 2 *',
      berlin,
      { on: ({ month, day }) => month === 2 && day === 29, times: ['12:00'] },
    ],
    [
      '0 8 13 * 5',
      berlin,
      { on: ({ day, weekday }) => day === 13 || weekday === 5, times: ['08:00'] },
    ],
    ['15 2 * * *', lordHowe, { on: daily, times: ['02:15'] }],
    ['45 1 * * *', lordHowe, { on: daily, times: ['01:45'] }],
    ['0 2 * * 0', lordHowe, { on: on(0), times: ['02:00'] }],
    ['30 6 15,31 * *', lordHowe, { on: ofMonth(15, 31), times: ['06:30'] }],
    ['0 0 * * *', saoPaulo, { on: daily, times: ['00:00'] }],
    ['0 7 1-7 * *', saoPaulo, { on: ofMonth(1, 2, 3, 4, 5, 6, 7), times: ['07:00'] }],
    ['59 23 * * 6', saoPaulo, { on: on(6), times: ['23:59'] }],
    ['45 5 * * *', kathmandu, { on: daily, times: ['05:45'] }],
    ['0 0 * * MON', kathmandu, { on: on(1), times: ['00:00'] }],
    [
      '0 0 1 1 *',
      kiritimati,
      { on: ({ month, day }) => month === 1 && day === 1, times: ['00:00'] },
    ],
    ['30 12 * * 2,4', kiritimati, { on: on(2, 4), times: ['12:30'] }],
    ['0 6 * * *', 'UTC', { on: daily, times: ['06:00'] }],
  ];

/** Rules with a count or an end, or with an interval across a change of clocks. */
function ruleTasks(): Sailing[] {
  const rule = (
    id: string,
    expr: string,
    zone: string,
    expected: Sailing['expected'],
  ): Sailing => ({
    id,
    fields: { schedule_kind: 'rrule', schedule_expr: expr, timezone: zone },
    expected,
  });
  const firstOf = (count: number, of: Sailing['expected']): Sailing['expected'] => {
    const few = of(YEAR.to).slice(0, count);
    return (upTo) => few.filter((at) => at <= upTo);
  };
  const until = (end: string, of: Sailing['expected']): Sailing['expected'] => {
    const ended = Date.parse(end);
    return (upTo) => of(Math.min(upTo, ended));
  };
  const secondSunday = ({ weekday, day }: CalendarDay): boolean =>
    weekday === 0 && day > 7 && day < 15;
  const lastFriday = ({ weekday, day, length }: CalendarDay): boolean =>
    weekday === 5 && day > length - 7;
  const at = (...times: readonly string[]) => ({ on: daily, times });
  const parts = 'BYMINUTE=30;BYSECOND=0';
  return [
    rule(
      'count',
      `FREQ=DAILY;BYHOUR=2;${parts};COUNT=100`,
      berlin,
      firstOf(100, fixed(berlin, at('02:30'))),
    ),
    rule(
      'until',
      `FREQ=DAILY;BYHOUR=1;${parts};UNTIL=20261115T000000Z`,
      newYork,
      until('2026-11-15T00:00:00Z', fixed(newYork, at('01:30'))),
    ),
    rule(
      'dtstart',
      'DTSTART;TZID=America/New_York:20260301T023000\nRRULE:FREQ=WEEKLY;BYDAY=SU;COUNT=10',
      'UTC',
      firstOf(10, (upTo) =>
        fixed(newYork, { on: on(0), times: ['02:30'] })(upTo).filter(
          (fire) => fire >= Date.parse('2026-03-01T00:00:00Z'),
        ),
      ),
    ),
    rule(
      'second-sunday',
      `FREQ=MONTHLY;BYDAY=2SU;BYHOUR=2;${parts}`,
      newYork,
      fixed(newYork, { on: secondSunday, times: ['02:30'] }),
    ),
    rule(
      'last-friday',
      `FREQ=MONTHLY;BYDAY=-1FR;BYHOUR=18;${parts}`,
      saoPaulo,
      fixed(saoPaulo, { on: lastFriday, times: ['18:30'] }),
    ),
    rule(
      'day-31',
      `FREQ=MONTHLY;BYMONTHDAY=31;BYHOUR=0;${parts};COUNT=5`,
      kathmandu,
      firstOf(5, fixed(kathmandu, { on: ofMonth(31), times: ['00:30'] })),
    ),
    rule(
      'sundays-and-wednesdays',
      `FREQ=WEEKLY;BYDAY=SU,WE;BYHOUR=2;BYMINUTE=15;BYSECOND=0;UNTIL=20261031T000000Z`,
      lordHowe,
      until('2026-10-31T00:00:00Z', fixed(lordHowe, { on: on(0, 3), times: ['02:15'] })),
    ),
  ];
}

/** Tasks that follow elapsed time, for some days around a change of clocks. */
function elapsedTasks(): Sailing[] {
  const about = (
    id: string,
    expr: string,
    zone: string,
    fits: (wall: { readonly hour: number; readonly minute: number }) => boolean,
    [starts_at, ends_at]: readonly [string, string],
  ): Sailing => {
    const whole = elapsedFires(zone, fits, Date.parse(starts_at) - 1, Date.parse(ends_at));
    const fields = { schedule_expr: expr, timezone: zone, starts_at, ends_at };
    return { id, fields, expected: (upTo) => whole.filter((at) => at <= upTo) };
  };
  const spring = ['2026-03-26T00:00:00.000Z', '2026-04-01T00:00:00.000Z'] as const;
  const autumn = ['2026-10-31T12:00:00.000Z', '2026-11-02T12:00:00.000Z'] as const;
  const april = ['2026-04-03T00:00:00.000Z', '2026-04-06T00:00:00.000Z'] as const;
  const quarters = ({ minute }: { minute: number }): boolean => minute % 15 === 0;
  const halves = ({ minute }: { minute: number }): boolean => minute === 30;
  const everyTwo = ({ hour, minute }: { hour: number; minute: number }): boolean =>
    hour % 2 === 0 && minute === 0;
  return [
    about('quarters-berlin', '*/15 * * * *', berlin, quarters, spring),
    about('quarters-new-york', '*/15 * * * *', newYork, quarters, autumn),
    about('halves-lord-howe', '30 * * * *', lordHowe, halves, april),
    about('two-hours-new-york', '0 */2 * * *', newYork, everyTwo, autumn),
  ];
}

function singleTasks(): Sailing[] {
  const once = (id: string, wall: string, zone: string): Sailing => {
    const at = instantOf(zone, Date.parse(`${wall}Z`));
    const fields = { schedule_kind: 'once', schedule_expr: wall, timezone: zone } as const;
    return { id, fields, expected: (upTo) => (at <= upTo ? [at] : []) };
  };
  return [
    once('once', '2026-06-15T12:00:00', saoPaulo),
    once('once-in-the-gap', '2026-03-08T02:30:00', newYork),
    once('once-of-two', '2026-10-25T02:30:00', berlin),
    once('once-by-half-an-hour', '2026-10-04T02:15:00', lordHowe),
    once('once-at-the-end', '2026-12-31T23:59:59', 'UTC'),
  ];
}

/** Forty tasks of all kinds that fire by time, each with its fires of the year. */
export function fleetOfAYear(): readonly Sailing[] {
  const cron = cronTasks.map(([schedule_expr, timezone, rule], index) => ({
    id: `cron-${index}`,
    // A rule without any fire within its bounds is refused: 2026 has no 29 February, but 2028 has.
    fields: { schedule_expr, timezone },
    expected: fixed(timezone, rule),
  }));
  return [...cron, ...ruleTasks(), ...elapsedTasks(), ...singleTasks()];
}
