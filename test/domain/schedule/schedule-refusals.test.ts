import { expect } from 'chai';
import { compileSchedule, ScheduleError } from '../../../domain/schedule/schedule.ts';
import type { ScheduleKind } from '../../../domain/vocabulary.ts';

const anchor = Date.UTC(2026, 0, 1);

function refusal(kind: ScheduleKind, expr: string | null, timezone = 'UTC'): ScheduleError {
  try {
    compileSchedule({ kind, expr, timezone, anchor, startsAt: null, endsAt: null });
  } catch (error) {
    if (error instanceof ScheduleError) return error;
    throw error;
  }
  throw new Error(`"${expr}" was accepted`);
}

/** Expressions, and what their refusal must say. */
const cron: readonly [string, RegExp][] = [
  ['* * * *', /got 4/],
  ['* * * * * * *', /got 7/],
  ['hourly', /got 1/],
  ['@reboot', /"@reboot" is not one of @yearly/],
  // Members of every JavaScript object are no aliases.
  ['constructor', /got 1/],
  ['__proto__', /got 1/],
  ['@every 5m', /"@every 5m" is not one of/],
  ['60 * * * *', /minute field: "60" is outside 0–59/],
  ['* 24 * * *', /hour field: "24" is outside 0–23/],
  ['* * 0 * *', /day-of-month field: "0" is outside 1–31/],
  ['* * 32 * *', /day-of-month field: "32"/],
  ['* * * 13 *', /month field: "13" is outside 1–12/],
  ['* * * * 8', /day-of-week field: "8" is outside 0–7/],
  ['60 * * * * *', /second field: "60"/],
  ['*/0 * * * *', /minute field: "\*\/0" has a step of 0/],
  ['*/90 * * * *', /minute field: "\*\/90" has a step larger/],
  ['*/x * * * *', /minute field: "\*\/x" has a step that is not a whole number/],
  ['1/2/3 * * * *', /minute field: "1\/2\/3" has more than one step/],
  ['30-10 * * * *', /minute field: "30-10" ends before it begins/],
  ['1-2-3 * * * *', /minute field: "1-2-3" is not a valid range/],
  ['1,,2 * * * *', /minute field: "1,,2" has an empty item/],
  ['-5 * * * *', /minute field: "-5" is not valid/],
  ['1.5 * * * *', /minute field: "1.5" is not valid/],
  ['* ? * * *', /hour field: "\?" is allowed only in day-of-month/],
  ['* * 15W * *', /day-of-month field: "15W" is not valid/],
  ['* * LW * *', /day-of-month field: "LW" is not valid/],
  ['* * L-3 * *', /day-of-month field: "L-3" is not valid/],
  ['* * * * L', /day-of-week field: "L" is not valid/],
  ['* * * * 1#6', /day-of-week field: "1#6" has a number outside 1–5/],
  ['* * * * 1#0', /day-of-week field: "1#0"/],
  ['* * * * 9L', /day-of-week field: "9L" is outside/],
  ['* * * FOO *', /month field: "FOO" is not valid/],
  ['* * * * MON-', /day-of-week field: "MON-" is not valid/],
  ['MON * * * *', /minute field: "MON" is not valid/],
  ['H * * * *', /minute field: "H" is not valid/],
];

const rrule: readonly [string, RegExp][] = [
  ['INTERVAL=2', /has no FREQ/],
  ['FREQ=SECONDLY', /FREQ=SECONDLY is not allowed/],
  ['FREQ=FORTNIGHTLY', /FREQ: "FORTNIGHTLY" is not one of YEARLY/],
  ['FREQ=DAILY;FOO=1', /unknown part FOO/],
  ['FREQ=DAILY;BYEASTER=1', /unknown part BYEASTER/],
  ['FREQ=DAILY;FREQ=WEEKLY', /FREQ occurs twice/],
  ['FREQ=DAILY;INTERVAL', /"INTERVAL" is not of the form/],
  ['FREQ=DAILY;INTERVAL=0', /INTERVAL: "0" is outside 1–/],
  ['FREQ=DAILY;INTERVAL=1.5', /INTERVAL: "1.5" is not a whole number/],
  ['FREQ=DAILY;COUNT=0', /COUNT: "0" is less than 1/],
  ['FREQ=DAILY;COUNT=-1', /COUNT: "-1" is not a whole number/],
  ['FREQ=DAILY;COUNT=1;UNTIL=20270101', /both COUNT and UNTIL/],
  ['FREQ=DAILY;UNTIL=tomorrow', /UNTIL: "tomorrow" is not a time/],
  ['FREQ=DAILY;UNTIL=20260230T000000Z', /UNTIL: "20260230T000000Z": there is no day 30/],
  ['FREQ=DAILY;BYHOUR=24', /BYHOUR: "24" is outside 0–23/],
  ['FREQ=DAILY;BYMINUTE=60', /BYMINUTE: "60" is outside 0–59/],
  ['FREQ=DAILY;BYSECOND=61', /BYSECOND: "61" is outside/],
  ['FREQ=DAILY;BYHOUR=-1', /BYHOUR: "-1" is not a whole number/],
  ['FREQ=YEARLY;BYMONTH=13', /BYMONTH: "13" is outside 1–12/],
  ['FREQ=MONTHLY;BYMONTHDAY=0', /BYMONTHDAY: "0" is outside ±1–31/],
  ['FREQ=MONTHLY;BYMONTHDAY=-32', /BYMONTHDAY: "-32"/],
  ['FREQ=YEARLY;BYYEARDAY=367', /BYYEARDAY: "367"/],
  ['FREQ=YEARLY;BYWEEKNO=54', /BYWEEKNO: "54"/],
  ['FREQ=WEEKLY;BYDAY=XX', /BYDAY: "XX" is not a weekday/],
  ['FREQ=WEEKLY;BYDAY=MO,', /BYDAY: "" is not a weekday/],
  ['FREQ=MONTHLY;BYDAY=0MO', /BYDAY: the number of "0MO"/],
  ['FREQ=WEEKLY;WKST=1MO', /WKST: "1MO" is not a weekday/],
  ['FREQ=WEEKLY;BYDAY=1MO', /BYDAY allows numbers/],
  ['FREQ=YEARLY;BYWEEKNO=1;BYDAY=1MO', /BYDAY allows no numbers .* with BYWEEKNO/],
  ['FREQ=MONTHLY;BYWEEKNO=1', /BYWEEKNO is allowed only with FREQ=YEARLY/],
  ['FREQ=DAILY;BYYEARDAY=1', /BYYEARDAY is not allowed with FREQ=DAILY/],
  ['FREQ=WEEKLY;BYMONTHDAY=1', /BYMONTHDAY is not allowed with FREQ=WEEKLY/],
  ['FREQ=MONTHLY;BYSETPOS=1', /BYSETPOS needs another BY-part/],
  ['FREQ=DAILY;DTSTART=20260101T000000Z', /DTSTART must be on a line of its own/],
  ['RRULE:FREQ=DAILY\nRRULE:FREQ=WEEKLY', /more than one RRULE/],
  ['DTSTART:20260101T000000Z', /has no RRULE/],
  ['DTSTART:2026-01-01\nRRULE:FREQ=DAILY', /DTSTART: "2026-01-01" is not a time/],
  ['DTSTART;TZID=Mars/Olympus:20260101T000000\nRRULE:FREQ=DAILY', /TZID "Mars\/Olympus" is not/],
  ['DTSTART;TZID=Europe/Berlin:20260101T000000Z\nRRULE:FREQ=DAILY', /both a TZID and a Z/],
  ['DTSTART:20260101T000000Z\nDTSTART:20260101T000000Z\nRRULE:FREQ=DAILY', /more than one DTSTART/],
  ['DTSTART:18990101T000000Z\nRRULE:FREQ=DAILY', /is before 1900/],
  ['EXRULE:FREQ=DAILY\nRRULE:FREQ=DAILY', /the property EXRULE is not supported/],
  ['RDATE;VALUE=PERIOD:20260101T000000Z\nRRULE:FREQ=DAILY', /VALUE=PERIOD is not supported/],
  ['every day', /"every day" is not a valid line/],
  // Not evaluable in bounded time.
  ['FREQ=MINUTELY;INTERVAL=1441;BYHOUR=3', /reaches the same time of day only every 1441 days/],
  // A COUNT that is too large is ignored, unless it may have ended before the rule was set.
  [
    'DTSTART;TZID=Europe/Berlin:19300101T000000\nRRULE:FREQ=DAILY;BYHOUR=2,3;COUNT=60000',
    /COUNT=60000 takes too long to count \(\d+ fires by 19\d\d\)/,
  ],
  [
    'DTSTART;X-A:20260101T000000\nRRULE:FREQ=DAILY',
    /parameter "X-A" is not of the form NAME=value/,
  ],
  ['DTSTART;X-A="b:20260101T000000\nRRULE:FREQ=DAILY', /is not a valid line/],
  [
    'DTSTART;TZID="W. Europe Standard Time":20260101T000000\nRRULE:FREQ=DAILY',
    /TZID "W\. Europe Standard Time" is a Windows zone name; its IANA zone is "Europe\/Berlin"/,
  ],
];

const once: readonly [string, RegExp][] = [
  ['tomorrow', /"tomorrow" is not an ISO 8601 timestamp/],
  ['2026-02-30T00:00:00Z', /no day 30 in month 2 of 2026/],
  ['2026-13-01T00:00:00Z', /no month 13/],
  ['2026-01-01T24:00:00Z', /no hour 24/],
  ['2026-01-01T00:60:00Z', /no minute 60/],
  ['2026-01-01T00:00:61Z', /no second 61/],
  ['2026-01-01T00:00:00+25:00', /no offset \+25:00/],
  ['9999-12-31T23:59:59-11:00', /"9999-12-31T23:59:59-11:00" is after the year 9999 in UTC/],
];

describe('a schedule is refused', () => {
  for (const [kind, cases] of [
    ['cron', cron],
    ['rrule', rrule],
    ['once', once],
  ] as const) {
    for (const [expr, issue] of cases) {
      it(`for the ${kind} expression ${JSON.stringify(expr)}, saying what is wrong in it`, () => {
        const error = refusal(kind, expr);
        expect(error.field).to.equal('schedule_expr');
        expect(error.issue).to.match(issue);
      });
    }
    it(`when it is of kind ${kind} and has no expression`, () => {
      expect(refusal(kind, null).issue).to.contain('is required');
      expect(refusal(kind, '  ').issue).to.contain('is required');
    });
  }

  it('for a topic pattern with a wildcard inside a segment', () => {
    expect(refusal('event', 'orders.a*').issue).to.contain('"a*"');
  });

  it('for an unknown timezone, naming the field', () => {
    const error = refusal('cron', '* * * * *', 'Mars/Olympus');
    expect(error.field).to.equal('timezone');
    expect(error.issue).to.contain('Mars/Olympus');
  });

  it('once, at an instant that has no timestamp in its zone', () => {
    const error = refusal('once', '9999-12-31T12:00:00Z', 'Pacific/Kiritimati');
    expect(error.issue).to.match(/is after the year 9999 in Pacific\/Kiritimati$/);
  });

  it('for a zone before a cron expression, naming the field for it', () => {
    for (const [expr, zone] of [
      ['CRON_TZ=America/New_York 0 9 * * *', 'America/New_York'],
      ['TZ=America/New_York 0 9 * * *', 'America/New_York'],
      ['tz = America/New_York @daily', 'America/New_York'],
      ['CRON_TZ="Pacific Standard Time" 0 9 * * *', 'America/Los_Angeles'],
    ] as const) {
      const { field, issue } = refusal('cron', expr);
      expect(field).to.equal('schedule_expr');
      expect(issue, expr).to.match(/TZ= is not allowed in a cron expression/i);
      expect(issue).to.contain(`set the field timezone to "${zone}"`);
    }
  });

  it('for a Windows zone name, giving the IANA name', () => {
    for (const [name, iana] of [
      ['Pacific Standard Time', 'America/Los_Angeles'],
      ['w. europe standard time', 'Europe/Berlin'],
      ['Central Asia Standard Time', 'Asia/Bishkek'],
      ['UTC-11', 'Etc/GMT+11'],
    ] as const) {
      const { field, issue } = refusal('cron', '* * * * *', name);
      expect(field).to.equal('timezone');
      expect(issue).to.equal(`"${name}" is a Windows zone name; its IANA zone is "${iana}"`);
    }
    expect(refusal('cron', '* * * * *', 'Mars Standard Time').issue).not.to.contain('Windows');
  });

  it('when it ends before it starts', () => {
    const spec = { kind: 'cron', expr: '* * * * *', timezone: 'UTC', anchor } as const;
    expect(() => compileSchedule({ ...spec, startsAt: 2, endsAt: 1 }))
      .to.throw(ScheduleError)
      .with.property('field', 'ends_at');
  });
});
