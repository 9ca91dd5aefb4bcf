import { localTimes, type ScheduleCase } from './schedule-case.ts';

function recurrence(name: string, expr: string, fires: string, ends = false): ScheduleCase {
  return {
    name,
    kind: 'rrule',
    expr,
    timezone: 'UTC',
    after: '2025-12-31T23:59:59Z',
    fires: localTimes(fires),
    ends,
  };
}

/** Rules of RFC 5545 beyond its examples. 1 January 2026 is a Thursday. */
export const recurrenceCases: readonly ScheduleCase[] = [
  recurrence(
    'a rule without its name',
    'DTSTART:20260101T090000\nFREQ=DAILY;COUNT=2',
    '2026-01 UTC 1 2',
    true,
  ),
  recurrence(
    'properties on one line',
    'DTSTART:20260101T090000Z RRULE:FREQ=DAILY;COUNT=2',
    '2026-01 UTC 1 2',
    true,
  ),
  recurrence(
    'lower case and a folded line',
    'dtstart:20260101T090000Z\r\nrrule:freq=weekly;by\r\n day=th;count=2',
    '2026-01 UTC 1 8',
    true,
  ),
  recurrence(
    'COUNT includes the fires that EXDATE removes',
    'DTSTART:20260101T090000Z\nRRULE:FREQ=DAILY;COUNT=5\nEXDATE:20260102T090000Z,20260104T090000Z',
    '2026-01 UTC 1 3 5',
    true,
  ),
  recurrence(
    'EXDATE with a date removes the day',
    'DTSTART:20260101T090000Z\nRRULE:FREQ=DAILY;COUNT=3;BYHOUR=9\nEXDATE;VALUE=DATE:20260102',
    '2026-01 UTC 1 3',
    true,
  ),
  recurrence(
    'EXDATE of another zone removes the same instant',
    'DTSTART:20260101T090000Z\nRRULE:FREQ=DAILY;COUNT=3\nEXDATE;TZID=Asia/Tokyo:20260102T180000',
    '2026-01 UTC 1 3',
    true,
  ),
  recurrence(
    'RDATE adds fires in order, and none twice',
    'DTSTART:20260101T090000Z\nRRULE:FREQ=DAILY;COUNT=3\nRDATE:20260102T120000Z,20260103T090000Z,20260110T090000Z',
    '2026-01 UTC 1 @09:00|2026-01 UTC 2 @09:00,12:00|2026-01 UTC 3 10 @09:00',
    true,
  ),
  recurrence(
    'EXDATE wins over RDATE',
    'DTSTART:20260101T090000Z\nRRULE:FREQ=DAILY;COUNT=1\nRDATE:20260105T090000Z\nEXDATE:20260105T090000Z',
    '2026-01 UTC 1',
    true,
  ),
  recurrence(
    'UNTIL with a date includes that day',
    'DTSTART:20260101T090000Z\nRRULE:FREQ=DAILY;UNTIL=20260103',
    '2026-01 UTC 1-3',
    true,
  ),
  recurrence(
    'UNTIL includes its own instant',
    'DTSTART:20260101T090000Z\nRRULE:FREQ=DAILY;UNTIL=20260103T090000Z',
    '2026-01 UTC 1-3',
    true,
  ),
  recurrence(
    'UNTIL without a zone is local',
    'DTSTART;TZID=America/New_York:20260101T090000\nRRULE:FREQ=DAILY;UNTIL=20260102T090000',
    '2026-01 EST 1 2',
    true,
  ),
  recurrence(
    'DTSTART with a date is its midnight',
    'DTSTART;VALUE=DATE:20260101\nRRULE:FREQ=MONTHLY;COUNT=2',
    '2026-01 UTC 1 @00:00|2026-02 UTC 1',
    true,
  ),
  recurrence(
    'a start that does not match the rule does not fire',
    'DTSTART:20260101T090000Z\nRRULE:FREQ=WEEKLY;BYDAY=MO;COUNT=2',
    '2026-01 UTC 5 12',
    true,
  ),
  recurrence(
    'the 31st skips the months without one',
    'DTSTART:20260131T090000Z\nRRULE:FREQ=MONTHLY;COUNT=4',
    '2026-01 UTC 31|2026-03 UTC 31|2026-05 UTC 31|2026-07 UTC 31',
    true,
  ),
  recurrence(
    '29 February comes in leap years',
    'DTSTART:20240229T090000Z\nRRULE:FREQ=YEARLY',
    '2028-02 UTC 29|2032-02 UTC 29|2036-02 UTC 29',
  ),
  recurrence(
    'the last day of the year',
    'DTSTART:20260101T090000Z\nRRULE:FREQ=YEARLY;BYYEARDAY=-1;COUNT=3',
    '2026-12 UTC 31|2027-12 UTC 31|2028-12 UTC 31',
    true,
  ),
  recurrence(
    'day 366 comes in leap years',
    'DTSTART:20260101T090000Z\nRRULE:FREQ=YEARLY;BYYEARDAY=366;COUNT=2',
    '2028-12 UTC 31|2032-12 UTC 31',
    true,
  ),
  recurrence(
    'week 53, which 2026 has and the next five years lack',
    'DTSTART:20260101T090000Z\nRRULE:FREQ=YEARLY;BYWEEKNO=53;BYDAY=MO;COUNT=2',
    '2026-12 UTC 28|2032-12 UTC 27',
    true,
  ),
  recurrence(
    'week 1 begins in the year before',
    'DTSTART:20260101T090000Z\nRRULE:FREQ=YEARLY;BYWEEKNO=1;BYDAY=MO,SU;COUNT=4',
    '2026-01 UTC 4|2027-01 UTC 4 10|2028-01 UTC 3',
    true,
  ),
  recurrence(
    'BYWEEKNO alone keeps the weekday of the start',
    'DTSTART:20260101T090000Z\nRRULE:FREQ=YEARLY;BYWEEKNO=10;COUNT=2',
    '2026-03 UTC 5|2027-03 UTC 11',
    true,
  ),
  recurrence(
    'the last Friday of the year',
    'DTSTART:20260101T090000Z\nRRULE:FREQ=YEARLY;BYDAY=-1FR;COUNT=2',
    '2026-12 UTC 25|2027-12 UTC 31',
    true,
  ),
  recurrence(
    'a plain weekday beside a numbered one',
    'DTSTART:20260101T090000Z\nRRULE:FREQ=MONTHLY;BYDAY=1MO,FR;COUNT=6',
    '2026-01 UTC 2 5 9 16 23 30',
    true,
  ),
  recurrence(
    'the first and last working hour of a day by position',
    'DTSTART:20260101T090000Z\nRRULE:FREQ=DAILY;BYHOUR=9,10,11,12;BYSETPOS=1,-1;COUNT=4',
    '2026-01 UTC 1 2 @09:00,12:00',
    true,
  ),
  recurrence(
    'the last workday of a year by position',
    'DTSTART:20260101T090000Z\nRRULE:FREQ=YEARLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1;COUNT=3',
    '2026-12 UTC 31|2027-12 UTC 31|2028-12 UTC 29',
    true,
  ),
  recurrence(
    'the second day of a week by position',
    'DTSTART:20260105T090000Z\nRRULE:FREQ=WEEKLY;BYDAY=MO,WE,FR;BYSETPOS=2;COUNT=3',
    '2026-01 UTC 7 14 21',
    true,
  ),
  recurrence(
    'every 5 hours, at other times each day',
    'DTSTART:20260101T090000Z\nRRULE:FREQ=HOURLY;INTERVAL=5;COUNT=6',
    '2026-01 UTC 1 @09:00,14:00,19:00|2026-01 UTC 2 @00:00,05:00,10:00',
    true,
  ),
  recurrence(
    'every 7 minutes within one hour of the day',
    'DTSTART:20260101T090000Z\nRRULE:FREQ=MINUTELY;INTERVAL=7;BYHOUR=9;COUNT=12',
    '2026-01 UTC 1 @09:00,09:07,09:14,09:21,09:28,09:35,09:42,09:49,09:56|2026-01 UTC 2 @09:02,09:09,09:16',
    true,
  ),
  recurrence(
    'every 36 hours on workdays',
    'DTSTART:20260101T090000Z\nRRULE:FREQ=HOURLY;INTERVAL=36;BYDAY=MO,TU,WE,TH,FR;COUNT=5',
    '2026-01 UTC 1 @09:00|2026-01 UTC 2 @21:00|2026-01 UTC 5 @21:00|2026-01 UTC 7 @09:00|2026-01 UTC 8 @21:00',
    true,
  ),
  recurrence(
    'every hour at two minutes',
    'DTSTART:20260101T090000Z\nRRULE:FREQ=HOURLY;BYMINUTE=10,40;COUNT=4',
    '2026-01 UTC 1 @09:10,09:40,10:10,10:40',
    true,
  ),
  recurrence(
    'hours of a day of the year',
    'DTSTART:20260101T090000Z\nRRULE:FREQ=HOURLY;BYYEARDAY=100;BYHOUR=6,7;COUNT=3',
    '2026-04 UTC 10 @06:00,07:00|2027-04 UTC 10 @06:00',
    true,
  ),
];
