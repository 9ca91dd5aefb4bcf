import type { ScheduleKind } from '../../../domain/vocabulary.ts';
import { localTimes, type ScheduleCase } from './schedule-case.ts';

/** Cases of one zone, from an instant on. */
export function at(timezone: string, after: string) {
  return (kind: ScheduleKind, expr: string, name: string, fires: string): ScheduleCase => ({
    name: `${timezone}: ${name}`,
    kind,
    expr,
    timezone,
    after,
    fires: localTimes(fires),
    ends: kind === 'once',
  });
}

// New York: 8 March 2026 02:00 → 03:00; 1 November 2026 02:00 → 01:00.
export const nyForward = at('America/New_York', '2026-03-08T04:59:59Z');
export const nyBack = at('America/New_York', '2026-11-01T03:59:59Z');
// Berlin: 29 March 2026 02:00 → 03:00; 25 October 2026 03:00 → 02:00.
const berlinForward = at('Europe/Berlin', '2026-03-28T22:59:59Z');
const berlinBack = at('Europe/Berlin', '2026-10-24T21:59:59Z');
// Lord Howe, by half an hour: 4 October 2026 02:00 → 02:30; 5 April 2026 02:00 → 01:30.
export const howeForward = at('Australia/Lord_Howe', '2026-10-03T13:29:59Z');
const howeBack = at('Australia/Lord_Howe', '2026-04-04T12:59:59Z');
// São Paulo at midnight, formerly: 4 November 2018 00:00 → 01:00; 18 February 2018 00:00 → 23:00.
const paulistaForward = at('America/Sao_Paulo', '2018-11-04T02:59:59Z');
const paulistaBack = at('America/Sao_Paulo', '2018-02-17T23:59:59Z');
const paulistaNow = at('America/Sao_Paulo', '2026-10-31T12:00:00Z');
const kathmandu = at('Asia/Kathmandu', '2026-01-01T00:00:00Z');
const kiritimati = at('Pacific/Kiritimati', '2025-12-30T00:00:00Z');
// Samoa had no 30 December 2011.
const apia = at('Pacific/Apia', '2011-12-29T12:00:00Z');

const march = 'DTSTART:20260301T023000\nRRULE:';
const october = 'DTSTART:20261001T013000\nRRULE:';

export const clockChangeCases: readonly ScheduleCase[] = [
  nyForward(
    'cron',
    '30 2 * * *',
    'a time in the gap fires an hour later',
    '2026-03 EDT 8 @03:30|2026-03 EDT 9 @02:30',
  ),
  nyForward(
    'cron',
    '0 2 * * *',
    'the first instant of the gap',
    '2026-03 EDT 8 @03:00|2026-03 EDT 9 @02:00',
  ),
  nyForward(
    'cron',
    '15,45 2 * * *',
    'two times in the gap',
    '2026-03 EDT 8 @03:15,03:45|2026-03 EDT 9 @02:15',
  ),
  nyForward(
    'cron',
    '30 2,3 * * *',
    'a moved fire and a regular one at the same instant are one fire',
    '2026-03 EDT 8 @03:30|2026-03 EDT 9 @02:30,03:30',
  ),
  nyForward(
    'cron',
    '45 2 8 * *',
    'a moved fire of a single day',
    '2026-03 EDT 8 @03:45|2026-04 EDT 8 @02:45',
  ),
  nyForward(
    'cron',
    '15 3,2,4 * * *',
    'fires stay in order',
    '2026-03 EDT 8 @03:15,04:15|2026-03 EDT 9 @02:15',
  ),
  nyForward(
    'cron',
    '0 * * * *',
    'every hour leaves out the gap',
    '2026-03 EST 8 @00:00,01:00|2026-03 EDT 8 @03:00,04:00',
  ),
  nyForward(
    'cron',
    '*/30 * * * *',
    'every half hour continues',
    '2026-03 EST 8 @00:00,00:30,01:00,01:30|2026-03 EDT 8 @03:00,03:30',
  ),
  nyForward(
    'cron',
    '0 */2 * * *',
    'every second hour fires at the hours that exist',
    '2026-03 EST 8 @00:00|2026-03 EDT 8 @04:00,06:00',
  ),
  nyForward(
    'cron',
    '59 59 1 * * *',
    'the last second before the gap',
    '2026-03 EST 8 @01:59:59|2026-03 EDT 9 @01:59:59',
  ),
  nyForward(
    'rrule',
    `${march}FREQ=DAILY`,
    'a daily recurrence in the gap',
    '2026-03 EDT 8 @03:30|2026-03 EDT 9 @02:30',
  ),
  nyForward(
    'rrule',
    `${march}FREQ=WEEKLY;BYDAY=SU`,
    'a weekly recurrence in the gap',
    '2026-03 EDT 8 @03:30|2026-03 EDT 15 @02:30',
  ),
  nyForward(
    'rrule',
    `${march}FREQ=HOURLY`,
    'an hourly recurrence leaves out the gap',
    '2026-03 EST 8 @00:30,01:30|2026-03 EDT 8 @03:30,04:30',
  ),
  nyForward(
    'rrule',
    `${march}FREQ=MINUTELY;INTERVAL=30`,
    'a minutely recurrence continues',
    '2026-03 EST 8 @00:00,00:30,01:00,01:30|2026-03 EDT 8 @03:00',
  ),
  nyForward(
    'rrule',
    `${march}FREQ=DAILY\nEXDATE:20260308T023000`,
    'EXDATE removes a moved fire',
    '2026-03 EDT 9 10 @02:30',
  ),
  nyForward('once', '2026-03-08T02:30:00', 'a single time in the gap', '2026-03 EDT 8 @03:30'),
  nyForward(
    'once',
    '2026-03-08T02:30:00-05:00',
    'a single time with an offset',
    '2026-03 EDT 8 @03:30',
  ),
  nyBack(
    'cron',
    '30 1 * * *',
    'a time that occurs twice fires the first time',
    '2026-11 EDT 1 @01:30|2026-11 EST 2 @01:30',
  ),
  nyBack(
    'cron',
    '0 1,2 * * *',
    'a time that occurs twice and one that does not',
    '2026-11 EDT 1 @01:00|2026-11 EST 1 @02:00|2026-11 EST 2 @01:00',
  ),
  nyBack(
    'cron',
    '*/20 1 * * *',
    'several times in the repeated hour',
    '2026-11 EDT 1 @01:00,01:20,01:40|2026-11 EST 2 @01:00',
  ),
  nyBack(
    'cron',
    '0 * * * *',
    'every hour fires in both passes',
    '2026-11 EDT 1 @00:00,01:00|2026-11 EST 1 @01:00,02:00',
  ),
  nyBack(
    'cron',
    '30 */1 * * *',
    'a stepped hour fires in both passes',
    '2026-11 EDT 1 @00:30,01:30|2026-11 EST 1 @01:30,02:30',
  ),
  nyBack(
    'cron',
    '*/30 * * * *',
    'every half hour continues',
    '2026-11 EDT 1 @00:00,00:30,01:00,01:30|2026-11 EST 1 @01:00,01:30,02:00',
  ),
  nyBack(
    'rrule',
    `${october}FREQ=DAILY`,
    'a daily recurrence fires the first time',
    '2026-11 EDT 1 @01:30|2026-11 EST 2 @01:30',
  ),
  nyBack(
    'rrule',
    `${october}FREQ=HOURLY`,
    'an hourly recurrence fires in both passes',
    '2026-11 EDT 1 @00:30,01:30|2026-11 EST 1 @01:30,02:30',
  ),
  nyBack(
    'rrule',
    `${october}FREQ=HOURLY\nEXDATE:20261101T013000`,
    'EXDATE removes both passes',
    '2026-11 EDT 1 @00:30|2026-11 EST 1 @02:30',
  ),
  nyBack(
    'once',
    '2026-11-01T01:30',
    'a single time that occurs twice fires the first time',
    '2026-11 EDT 1 @01:30',
  ),
  nyBack(
    'once',
    '2026-11-01T01:30-05:00',
    'a single time with the later offset fires the second time',
    '2026-11 EST 1 @01:30',
  ),
  berlinForward(
    'cron',
    '30 2 * * *',
    'a time in the gap fires an hour later',
    '2026-03 CEST 29 @03:30|2026-03 CEST 30 @02:30',
  ),
  berlinForward(
    'cron',
    '*/30 * * * *',
    'every half hour continues',
    '2026-03 CET 29 @00:00,00:30,01:00,01:30|2026-03 CEST 29 @03:00,03:30',
  ),
  berlinForward(
    'rrule',
    `${march}FREQ=MONTHLY;BYDAY=-1SU`,
    'the last Sunday of the month',
    '2026-03 CEST 29 @03:30|2026-04 CEST 26 @02:30',
  ),
  berlinForward('once', '2026-03-29 02:00', 'a single time in the gap', '2026-03 CEST 29 @03:00'),
  berlinBack(
    'cron',
    '30 2 * * *',
    'a time that occurs twice fires the first time',
    '2026-10 CEST 25 @02:30|2026-10 CET 26 @02:30',
  ),
  berlinBack(
    'cron',
    '15 * * * *',
    'every hour fires in both passes',
    '2026-10 CEST 25 @00:15,01:15,02:15|2026-10 CET 25 @02:15,03:15',
  ),
  berlinBack(
    'rrule',
    `${october}FREQ=MINUTELY;INTERVAL=60`,
    'a minutely recurrence fires in both passes',
    '2026-10 CEST 25 @00:30,01:30,02:30|2026-10 CET 25 @02:30',
  ),
  howeForward(
    'cron',
    '15 2 * * *',
    'a time in the half hour fires half an hour later',
    '2026-10 +11:00 4 @02:45|2026-10 +11:00 5 @02:15',
  ),
  howeForward(
    'cron',
    '0 2 * * *',
    'the first instant of the gap',
    '2026-10 +11:00 4 @02:30|2026-10 +11:00 5 @02:00',
  ),
  howeForward(
    'cron',
    '0,30 2 * * *',
    'a moved fire and a regular one at the same instant are one fire',
    '2026-10 +11:00 4 @02:30|2026-10 +11:00 5 @02:00,02:30',
  ),
  howeForward(
    'cron',
    '0 * * * *',
    'every hour leaves out the missing one',
    '2026-10 +10:30 4 @00:00,01:00|2026-10 +11:00 4 @03:00',
  ),
  howeForward(
    'cron',
    '*/15 * * * *',
    'every quarter of an hour continues',
    '2026-10 +10:30 4 @00:00,00:15,00:30,00:45,01:00,01:15,01:30,01:45|2026-10 +11:00 4 @02:30,02:45',
  ),
  howeBack(
    'cron',
    '45 1 * * *',
    'a time that occurs twice fires the first time',
    '2026-04 +11:00 5 @01:45|2026-04 +10:30 6 @01:45',
  ),
  howeBack(
    'cron',
    '15,45 1 * * *',
    'a time that occurs twice and one that does not',
    '2026-04 +11:00 5 @01:15,01:45|2026-04 +10:30 6 @01:15',
  ),
  howeBack(
    'cron',
    '0 * * * *',
    'every hour, none of which occurs twice',
    '2026-04 +11:00 5 @00:00,01:00|2026-04 +10:30 5 @02:00,03:00',
  ),
  howeBack(
    'cron',
    '45 * * * *',
    'every hour, one of which occurs twice',
    '2026-04 +11:00 5 @00:45,01:45|2026-04 +10:30 5 @01:45,02:45',
  ),
  paulistaForward(
    'cron',
    '0 0 * * *',
    'a midnight that does not exist',
    '2018-11 -02:00 4 @01:00|2018-11 -02:00 5 @00:00',
  ),
  paulistaForward('cron', '@hourly', 'every hour across midnight', '2018-11 -02:00 4 @01:00,02:00'),
  paulistaBack(
    'cron',
    '30 23 * * *',
    'a late evening that occurs twice',
    '2018-02 -02:00 17 @23:30|2018-02 -03:00 18 @23:30',
  ),
  paulistaBack(
    'cron',
    '@hourly',
    'every hour across the second midnight',
    '2018-02 -02:00 17 @22:00,23:00|2018-02 -03:00 17 @23:00|2018-02 -03:00 18 @00:00',
  ),
  paulistaNow('cron', '0 0 * * *', 'no change since 2019', '2026-11 -03:00 1-3 @00:00'),
  kathmandu('cron', '0 9 * * *', 'a quarter of an hour off', '2026-01 +05:45 1-3 @09:00'),
  kathmandu(
    'cron',
    '*/30 * * * *',
    'half hours of the local clock',
    '2026-01 +05:45 1 @06:00,06:30,07:00',
  ),
  kathmandu(
    'rrule',
    'DTSTART:20260101T000000\nRRULE:FREQ=HOURLY',
    'local hours',
    '2026-01 +05:45 1 @06:00,07:00',
  ),
  kiritimati(
    'cron',
    '0 0 1 1 *',
    'the first new year',
    '2026-01 +14:00 1 @00:00|2027-01 +14:00 1 @00:00',
  ),
  kiritimati(
    'rrule',
    'DTSTART:20251231T233000\nRRULE:FREQ=DAILY',
    'local days',
    '2025-12 +14:00 31 @23:30|2026-01 +14:00 1 @23:30',
  ),
  apia(
    'cron',
    '0 9 * * *',
    'a day that does not exist',
    '2011-12 -10:00 29 @09:00|2011-12 +14:00 31 @09:00|2012-01 +14:00 1 @09:00',
  ),
  apia(
    'cron',
    '0 */6 * * *',
    'every six hours across a day that does not exist',
    '2011-12 -10:00 29 @06:00,12:00,18:00|2011-12 +14:00 31 @00:00,06:00',
  ),
];
