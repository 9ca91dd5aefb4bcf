import { expect } from 'chai';
import {
  compileSchedule,
  MAX_COMPILE_STEPS,
  scheduleWarnings,
} from '../../../domain/schedule/schedule.ts';

const DAY = 86_400_000;
const NOW = Date.UTC(2026, 0, 1);

/** The warnings of a rule, which are the same for a list of tasks and when compiling. */
function warnings(expr: string, startsAt: string | null = null): readonly string[] {
  const spec = {
    kind: 'rrule',
    expr,
    timezone: 'UTC',
    anchor: NOW,
    startsAt: startsAt === null ? null : Date.parse(startsAt),
    endsAt: null,
  } as const;
  const compiled = compileSchedule(spec).warnings;
  expect(scheduleWarnings(spec, MAX_COMPILE_STEPS)).to.deep.equal(compiled);
  return compiled;
}

const daily = 'DTSTART:20260101T090000Z\nRRULE:FREQ=DAILY;COUNT=10';
const useless = (count: number, of: number, times: string): string =>
  `EXDATE: ${count} of ${of} ${count === 1 ? 'removes' : 'remove'} nothing because the rule does not fire then: ${times}`;

describe('a recurrence warns', () => {
  it('of nothing if all its parts have an effect', () => {
    expect(warnings(`${daily}\nEXDATE:20260103T090000Z`)).to.deep.equal([]);
    expect(warnings(daily, '2026-01-01T09:00:00Z')).to.deep.equal([]);
  });

  it('of EXDATEs that remove nothing, with their number', () => {
    expect(warnings(`${daily}\nEXDATE:20260103T090000Z,20260104T100000Z`)).to.deep.equal([
      useless(1, 2, '2026-01-04T10:00:00'),
    ]);
    const days = `${daily}\nEXDATE;VALUE=DATE:20260102,20260111,20251231`;
    expect(warnings(days)).to.deep.equal([useless(2, 3, '2026-01-11, 2025-12-31')]);
    const many = `${daily}\nEXDATE:${['01', '02', '03', '04', '05'].map((d) => `202602${d}T090000Z`).join()}`;
    expect(warnings(many)).to.deep.equal([
      useless(5, 5, '2026-02-01T09:00:00, 2026-02-02T09:00:00, 2026-02-03T09:00:00 and 2 more'),
    ]);
  });

  it('of no EXDATE that removes an RDATE or one pass of a repeated hour', () => {
    expect(warnings(`${daily}\nRDATE:20260301T120000Z\nEXDATE:20260301T120000Z`)).to.deep.equal([]);
    const newYork = 'DTSTART;TZID=America/New_York:20261031T013000\nRRULE:FREQ=HOURLY;INTERVAL=12';
    expect(warnings(`${newYork}\nEXDATE;TZID=America/New_York:20261101T013000`)).to.deep.equal([
      "DTSTART's zone America/New_York is used, not the timezone UTC",
    ]);
  });

  it('of a COUNT with fires before starts_at, and how many remain', () => {
    const text = (before: string, left: string): string =>
      `COUNT=10 counts from the rule's start, but ${before} before starts_at; ${left}`;
    expect(warnings(daily, '2026-01-02T00:00:00Z')).to.deep.equal([
      text('1 of its fires is', '9 remain'),
    ]);
    expect(warnings(daily, '2026-01-10T09:00:00Z')).to.deep.equal([
      text('9 of its fires are', '1 remains'),
    ]);
    expect(warnings(daily, '2027-01-01T00:00:00Z')).to.deep.equal([
      text('10 of its fires are', '0 remain'),
    ]);
    // A fire at starts_at runs.
    expect(warnings(daily, '2026-01-05T09:00:00Z')).to.deep.equal([
      text('4 of its fires are', '6 remain'),
    ]);
  });

  it('of a COUNT that is too large to count, which is ignored', () => {
    const fixed = 'DTSTART;TZID=Europe/Berlin:20260101T090000\nRRULE:FREQ=DAILY;BYHOUR=2,3,9';
    for (const [expr, count] of [
      [daily.replace(/;COUNT.*/, ''), '1000000001'],
      [daily.replace(/;COUNT.*/, ''), '9'.repeat(400)],
      [fixed, '900000'],
    ] as const) {
      const text = `${expr};COUNT=${count}`;
      expect(warnings(text)).to.include('COUNT is too large to count and is ignored');
      const spec = {
        kind: 'rrule',
        timezone: 'UTC',
        anchor: NOW,
        startsAt: null,
        endsAt: null,
      } as const;
      const [counted, none] = [text, expr].map((each) => compileSchedule({ ...spec, expr: each }));
      for (const after of [NOW, NOW + 36_500 * DAY, NOW + 2_900_000 * DAY]) {
        expect(counted?.next(after)?.at).to.equal(none?.next(after)?.at);
      }
    }
  });

  it('of ignored parameters, whatever their quoted values contain', () => {
    const expr =
      'DTSTART;X-NOTE="a: b; c, RRULE:d";TZID="Europe/Berlin";ALTREP=e:20260101T090000\n' +
      'RRULE;X-ID="1;2":FREQ=DAILY;COUNT=2\n' +
      'EXDATE;X-ID=3;TZID=Europe/Berlin:20260101T090000\n' +
      'RDATE;X-ID=4;VALUE=DATE-TIME:20260301T120000Z';
    expect(warnings(expr)).to.deep.equal([
      'DTSTART: the parameter X-NOTE is ignored',
      'DTSTART: the parameter ALTREP is ignored',
      'RRULE: the parameter X-ID is ignored',
      'EXDATE: the parameter X-ID is ignored',
      'RDATE: the parameter X-ID is ignored',
      "DTSTART's zone Europe/Berlin is used, not the timezone UTC",
    ]);
    const spec = {
      kind: 'rrule',
      expr,
      timezone: 'UTC',
      anchor: NOW,
      startsAt: null,
      endsAt: null,
    } as const;
    expect(
      compileSchedule(spec)
        .upcoming(0, 5)
        .map(({ local }) => local),
    ).to.deep.equal(['2026-01-02T09:00:00+01:00', '2026-03-01T13:00:00+01:00']);
  });

  it('in a list of tasks of nothing that takes long to count', () => {
    const expr =
      'DTSTART;TZID=Europe/Berlin:20260101T090000\nRRULE:FREQ=DAILY;BYHOUR=2,9;COUNT=20000';
    const spec = {
      kind: 'rrule',
      expr,
      timezone: 'Europe/Berlin',
      anchor: NOW,
      startsAt: NOW + DAY,
      endsAt: null,
    } as const;
    expect(scheduleWarnings(spec)).to.deep.equal([]);
    expect(compileSchedule(spec).warnings).to.deep.equal([
      "COUNT=20000 counts from the rule's start, but 1 of its fires is before starts_at; 19999 remain",
    ]);
  });
});
