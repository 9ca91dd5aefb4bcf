import { expect } from 'chai';
import { MAX_SCHEDULE_TEXT, scheduleText } from '../../../domain/schedule/words/schedule-text.ts';
import type { ScheduleKind } from '../../../domain/vocabulary.ts';

const anchor = Date.parse('2026-11-26T14:03:22.500Z');
const textOf = (kind: ScheduleKind, expr: string | null, timezone = 'Europe/Berlin'): string =>
  scheduleText({ kind, expr, timezone, anchor });

const crons: readonly (readonly [expression: string, words: string])[] = [
  ['* * * * *', 'every minute'],
  ['0 * * * *', 'every hour'],
  ['*/15 * * * *', 'every 15 minutes'],
  ['5/15 * * * *', 'every 15 minutes, starting at 5 minutes past the hour'],
  ['*/25 * * * *', 'at 0, 25, and 50 minutes past the hour'],
  ['*/10 * * * * *', 'every 10 seconds'],
  ['0 9 * * *', 'at 09:00, every day'],
  ['30 0 9 * * *', 'at 09:00:30, every day'],
  ['0,30 9,17 * * *', 'at 09:00, 09:30, 17:00 and 17:30, every day'],
  ['30 9-17 * * *', 'at 30 minutes past the hour, between 09:00 and 17:59, every day'],
  ['0 */2 * * *', 'on the hour, every 2 hours, every day'],
  ['0 */5 * * *', 'at 00:00, 05:00, 10:00, 15:00 and 20:00, every day'],
  ['0 9 * * MON-FRI', 'at 09:00, Monday through Friday'],
  ['0 0 * * 7', 'at 00:00, only on Sunday'],
  ['0 0 * * 5-7', 'at 00:00, only on Sunday, Friday, and Saturday'],
  ['0 0 L * *', 'at 00:00, on the last day of the month'],
  ['0 0 * * 5L', 'at 00:00, on the last Friday of the month'],
  ['0 0 * * 1#2', 'at 00:00, on the second Monday of the month'],
  ['0 0 ? * 1', 'at 00:00, only on Monday'],
  ['0 0 1 * 1', 'at 00:00, on day 1 of the month or on Monday'],
  ['0 0 1-31 * 1', 'at 00:00, every day'],
  ['0 0 1 1,7 *', 'at 00:00, on day 1 of the month, only in January and July'],
  ['@daily', 'at 00:00, every day'],
  ['0 0 */2 * 1', 'by the cron expression 0 0 */2 * 1'],
  ['0 0 * * 1#1,5', 'by the cron expression 0 0 * * 1#1,5'],
  ['*/15 */2 * * *', 'by the cron expression */15 */2 * * *'],
  ['* 0,12 * * *', 'by the cron expression * 0,12 * * *'],
  ['@reboot', 'by the cron expression @reboot'],
];

const rules: readonly (readonly [rule: string, words: string])[] = [
  ['FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=9;BYMINUTE=0;BYSECOND=0', 'every weekday at 09:00'],
  ['FREQ=DAILY', 'every day at 15:03:22'],
  ['FREQ=DAILY;BYHOUR=9,17;BYMINUTE=30;BYSECOND=0', 'every day at 09:30 and 17:30'],
  ['FREQ=DAILY;BYDAY=MO', 'every week on Monday at 15:03:22'],
  ['FREQ=WEEKLY', 'every week on Thursday at 15:03:22'],
  ['FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,WE', 'every 2 weeks on Monday and Wednesday at 15:03:22'],
  ['FREQ=WEEKLY;BYMONTH=6;BYDAY=MO,TU,WE,TH,FR', 'every weekday in June at 15:03:22'],
  ['FREQ=MONTHLY', 'every month on the 26th at 15:03:22'],
  ['FREQ=MONTHLY;BYMONTHDAY=-1', 'every month on the last day at 15:03:22'],
  ['FREQ=MONTHLY;BYMONTHDAY=31', 'every month on the 31st (in months that have it) at 15:03:22'],
  ['FREQ=MONTHLY;BYDAY=1MO,-1FR', 'every month on the 1st Monday and last Friday at 15:03:22'],
  ['FREQ=YEARLY', 'every November on the 26th at 15:03:22'],
  ['FREQ=YEARLY;INTERVAL=2', 'every 2 years in November on the 26th at 15:03:22'],
  ['FREQ=HOURLY;BYMINUTE=30,0', 'every hour at minutes 0 and 30'],
  ['FREQ=MINUTELY;INTERVAL=15', 'every 15 minutes'],
  ['FREQ=DAILY;COUNT=3', 'every day at 15:03:22, 3 times in all'],
  ['FREQ=DAILY;UNTIL=20261231T080000Z', 'every day at 15:03:22, until 2026-12-31 at 08:00 UTC'],
  [
    'FREQ=MONTHLY;BYDAY=MO,TU;BYSETPOS=-1',
    'by the RFC 5545 rule FREQ=MONTHLY;BYDAY=MO,TU;BYSETPOS=-1',
  ],
  ['FREQ=YEARLY;BYDAY=1MO', 'by the RFC 5545 rule FREQ=YEARLY;BYDAY=1MO'],
  ['FREQ=MINUTELY;BYHOUR=9', 'by the RFC 5545 rule FREQ=MINUTELY;BYHOUR=9'],
];

describe('a schedule in words', () => {
  for (const [expression, words] of crons) {
    it(`is "${words}" for the cron expression ${expression}`, () => {
      expect(textOf('cron', expression)).to.equal(`${words}, Europe/Berlin`);
    });
  }

  for (const [rule, words] of rules) {
    it(`is "${words}" for the rule ${rule}`, () => {
      expect(textOf('rrule', rule)).to.equal(`${words}, Europe/Berlin`);
    });
  }

  it('names the start, the zone, the exceptions and the additions of a recurrence', () => {
    const lines = [
      'DTSTART;TZID=America/New_York:20260302T080000',
      'RRULE:FREQ=WEEKLY;BYDAY=MO',
      'EXDATE;TZID=America/New_York:20260309T080000,20260316T080000',
      'RDATE:20261224T080000Z',
    ];
    expect(textOf('rrule', lines.join('\n'))).to.equal(
      'every week on Monday at 08:00, from 2026-03-02, with exceptions (2 EXDATE), ' +
        'with added times (1 RDATE), America/New_York',
    );
  });

  it("gives a single time in the task's zone", () => {
    const words = 'once, on 2026-12-01 at 09:00, Europe/Berlin';
    expect(textOf('once', '2026-12-01T09:00')).to.equal(words);
    expect(textOf('once', '2026-12-01T08:00:00Z')).to.equal(words);
    expect(textOf('once', '2026-12-01T08:00:30.5Z', 'UTC')).to.equal(
      'once, on 2026-12-01 at 08:00:30.500, UTC',
    );
  });

  it('names the topics of an event task', () => {
    expect(textOf('event', 'orders.*')).to.equal('when an event on orders.* is published');
    expect(textOf('event', '#')).to.equal('when any event is published');
    expect(textOf('event', null)).to.equal('when any event is published');
  });

  it('quotes an invalid expression in one line of bounded length', () => {
    expect(textOf('cron', '0 9 * * *', 'Mars/Olympus')).to.equal(
      'by the cron expression 0 9 * * *, Mars/Olympus',
    );
    expect(textOf('cron', null)).to.equal('by the cron expression , Europe/Berlin');
    expect(textOf('once', 'tomorrow')).to.equal('by the time tomorrow, Europe/Berlin');
    const long = textOf('rrule', `FREQ=DAILY;\n${'X'.repeat(100_000)}`, 'Y'.repeat(100_000));
    expect(long).to.match(/^by the RFC 5545 rule FREQ=DAILY; X+…, Y+…$/);
    expect(long.length).to.be.at.most(MAX_SCHEDULE_TEXT);
  });
});
