import { expect } from 'chai';
import fc from 'fast-check';
import { compileSchedule, ScheduleError } from '../../../domain/schedule/schedule.ts';
import { MAX_SCHEDULE_TEXT, scheduleText } from '../../../domain/schedule/words/schedule-text.ts';

const anchor = Date.parse('2026-11-26T14:03:22Z');
const DAY = 86_400_000;
const weekdays = 'Sunday Monday Tuesday Wednesday Thursday Friday Saturday'.split(' ');
const months =
  'January February March April May June July August September October November December'.split(
    ' ',
  );

type TimedKind = 'cron' | 'rrule';

const fieldOf = (min: number, max: number, more: readonly string[] = []): fc.Arbitrary<string> => {
  const value = fc.integer({ min, max });
  const range = fc.tuple(value, value).map(([a, b]) => `${Math.min(a, b)}-${Math.max(a, b)}`);
  const step = fc.integer({ min: 1, max: max - min });
  return fc.oneof(
    { weight: 4, arbitrary: fc.constant('*') },
    { weight: 3, arbitrary: value.map(String) },
    { weight: 2, arbitrary: fc.array(value, { minLength: 1, maxLength: 4 }).map(String) },
    { weight: 2, arbitrary: range },
    { weight: 2, arbitrary: step.map((n) => `*/${n}`) },
    { weight: 1, arbitrary: fc.tuple(range, step).map(([a, n]) => `${a}/${n}`) },
    { weight: 1, arbitrary: fc.tuple(value, step).map(([a, n]) => `${a}/${n}`) },
    ...more.map((arbitrary) => ({ weight: 1, arbitrary: fc.constant(arbitrary) })),
  );
};

const cronExpressions = fc
  .tuple(
    fc.oneof({ weight: 5, arbitrary: fc.constant('0') }, { weight: 1, arbitrary: fieldOf(0, 59) }),
    fieldOf(0, 59),
    fieldOf(0, 23),
    fieldOf(1, 31, ['L', '?', '1,L']),
    fieldOf(1, 12, ['JAN', 'MAR-MAY']),
    fieldOf(0, 7, ['?', '5L', '1#2', 'MON-FRI', '5-7', '0-7', '7', 'SUN,1#1']),
  )
  .map((fields) => fields.join(' '));

const partOf = (name: string, values: fc.Arbitrary<unknown>): fc.Arbitrary<string> =>
  fc.oneof(
    { weight: 2, arbitrary: fc.constant('') },
    {
      weight: 1,
      arbitrary: fc
        .array(values, { minLength: 1, maxLength: 3 })
        .map((list) => `;${name}=${[...new Set(list)].join(',')}`),
    },
  );

const rruleExpressions = fc
  .tuple(
    fc.constantFrom('YEARLY', 'MONTHLY', 'WEEKLY', 'DAILY', 'HOURLY', 'MINUTELY'),
    fc.constantFrom('', '', ';INTERVAL=2', ';INTERVAL=5'),
    partOf('BYMONTH', fc.integer({ min: 1, max: 12 })),
    partOf('BYMONTHDAY', fc.constantFrom(1, 15, 31, -1, -2)),
    partOf('BYDAY', fc.constantFrom('MO', 'TU', 'WE', 'TH', 'FR', 'SA', 'SU', '1MO', '-1FR')),
    fc.constantFrom('', '', ';BYDAY=MO,TU,WE,TH,FR', ';BYDAY=MO,TU,WE,TH,FR,SA,SU'),
    partOf('BYHOUR', fc.integer({ min: 0, max: 23 })),
    partOf('BYMINUTE', fc.integer({ min: 0, max: 59 })),
    fc.constantFrom('', '', ';BYSECOND=0', ';BYSETPOS=1', ';COUNT=30', ';UNTIL=20280101'),
  )
  .map(([freq, ...parts]) => `FREQ=${freq}${parts.join('')}`);

/** The next fires in UTC, without clock changes; null for an expression that is refused. */
function firesOf(kind: TimedKind, expr: string, count: number): readonly number[] | null {
  const spec = { kind, expr, timezone: 'UTC', anchor, startsAt: null, endsAt: null };
  try {
    return compileSchedule(spec)
      .upcoming(anchor - 1, count)
      .map(({ at }) => at);
  } catch (error) {
    if (error instanceof ScheduleError) return null;
    throw error;
  }
}

const textOf = (kind: TimedKind, expr: string): string =>
  scheduleText({ kind, expr, timezone: 'UTC', anchor });

const isQuoted = (text: string): boolean => text.startsWith('by the ');

/** A claim of the words that the fires contradict; null if there is none. */
function contradiction(text: string, fires: readonly number[]): string | null {
  const every = (claim: string, holds: (at: number) => boolean): string | null =>
    fires.every(holds) ? null : claim;
  const named = (names: readonly string[]): ReadonlySet<number> => {
    // A range of names includes those in between.
    const found = names.flatMap((name, at) => (text.includes(name) ? [at] : []));
    const [first = 0] = found;
    const range = names.some((name) => text.includes(`${name} through`));
    return new Set(
      range ? [...names.keys()].filter((at) => at >= first && at <= (found.at(-1) ?? 0)) : found,
    );
  };
  const found: (string | null)[] = [];
  const monthsNamed = named(months);
  if (monthsNamed.size > 0) {
    found.push(every('months', (at) => monthsNamed.has(new Date(at).getUTCMonth())));
  }
  const daysNamed = / or /.test(text) ? new Set<number>() : named(weekdays);
  if (daysNamed.size > 0) {
    found.push(every('weekdays', (at) => daysNamed.has(new Date(at).getUTCDay())));
  }
  if (/every weekday/.test(text)) {
    found.push(every('every weekday', (at) => ![0, 6].includes(new Date(at).getUTCDay())));
  }
  const times = text.match(
    /^(?:.* )?(?<!starting )at ((?:\d\d:\d\d(?::\d\d)?(?:, | and )?)+)/,
  )?.[1];
  if (times !== undefined && !text.includes('past the hour')) {
    const listed = new Set(times.match(/\d\d:\d\d(?::\d\d)?/g));
    const clock = (at: number): string =>
      new Date(at)
        .toISOString()
        .slice(11, 19)
        .replace(/^(\d\d:\d\d):00$/, '$1');
    found.push(every('times of day', (at) => listed.has(clock(at))));
  }
  const isBounded = /times in all|until|once only/.test(text);
  if (/every day(?! of| in)/.test(text) && !isBounded && !text.includes(' every 2 ')) {
    const days = new Set(fires.map((at) => Math.floor(at / DAY)));
    const [first = 0] = fires;
    const span = Math.floor((fires.at(-1) ?? first) / DAY) - Math.floor(first / DAY) + 1;
    found.push(days.size === span ? null : 'every day');
  }
  const gap =
    /^every (?:(\d+) )?(minute|hour|second)s?(?:, UTC|, starting at \d+ minutes past the hour, UTC)$/.exec(
      text,
    );
  if (gap !== null) {
    const unit = { second: 1_000, minute: 60_000, hour: 3_600_000 }[gap[2] as 'second'];
    const step = Number(gap[1] ?? 1) * unit;
    const isEven = fires.every((at, index) => index === 0 || at - (fires[index - 1] ?? 0) === step);
    found.push(isEven ? null : 'gap');
  }
  return found.find((each) => each !== null) ?? null;
}

describe('the words of any schedule', () => {
  for (const kind of ['cron', 'rrule'] as const) {
    const expressions = kind === 'cron' ? cronExpressions : rruleExpressions;

    it(`agree with the fires of a ${kind} expression`, () => {
      let described = 0;
      fc.assert(
        fc.property(expressions, (expr) => {
          const fires = firesOf(kind, expr, 60);
          if (fires === null || fires.length === 0) return;
          const text = textOf(kind, expr);
          expect(text).to.match(/, UTC$/);
          if (isQuoted(text)) return;
          described += 1;
          expect(contradiction(text, fires), `${expr}: ${text}`).to.equal(null);
        }),
        { numRuns: 1_500 },
      );
      expect(described).to.be.above(200);
    });

    it(`are equal for two ${kind} expressions only if both fire at the same times`, () => {
      const known = new Map<string, { readonly expr: string; readonly fires: readonly number[] }>();
      fc.assert(
        fc.property(expressions, (expr) => {
          const fires = firesOf(kind, expr, 40);
          const text = textOf(kind, expr);
          if (fires === null || isQuoted(text)) return;
          const twin = known.get(text);
          if (twin === undefined) known.set(text, { expr, fires });
          else expect(fires, `${expr} and ${twin.expr}: ${text}`).to.deep.equal(twin.fires);
        }),
        { numRuns: 3_000 },
      );
    });
  }

  it('have bounded length for any string, and never throw', () => {
    const kinds = fc.constantFrom('cron', 'rrule', 'once', 'event');
    const exprs = fc.oneof(fc.string({ maxLength: 600 }), cronExpressions, rruleExpressions);
    fc.assert(
      fc.property(
        kinds,
        exprs,
        fc.constantFrom('UTC', 'Asia/Kolkata', ''),
        (kind, expr, timezone) => {
          const text = scheduleText({ kind, expr, timezone, anchor });
          expect(text.length).to.be.within(1, MAX_SCHEDULE_TEXT);
        },
      ),
      { numRuns: 2_000 },
    );
  });
});
