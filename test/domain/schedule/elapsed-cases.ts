import { at, howeForward, nyBack, nyForward } from './clock-change-cases.ts';
import type { ScheduleCase } from './schedule-case.ts';

// Havana at midnight: 8 March 2026 00:00 → 01:00; 1 November 2026 01:00 → 00:00.
const havanaForward = at('America/Havana', '2026-03-07T16:59:59Z');
const havanaBack = at('America/Havana', '2026-10-31T15:59:59Z');

/** Rules that count real time, and similar rules of fixed wall-clock times, at clock changes. */
export const elapsedCases: readonly ScheduleCase[] = [
  nyBack(
    'rrule',
    'DTSTART;TZID=America/New_York:20261031T013000\nRRULE:FREQ=HOURLY;INTERVAL=12',
    'every twelve hours continues in real time when the clock goes back',
    '2026-11 EDT 1 @01:30|2026-11 EST 1 @12:30|2026-11 EST 2 @00:30,12:30',
  ),
  nyForward(
    'rrule',
    'DTSTART;TZID=America/New_York:20260307T023000\nRRULE:FREQ=HOURLY;INTERVAL=24',
    'every 24 hours fires on the day without 02:30, and an hour later from then on',
    '2026-03 EDT 8-10 @03:30',
  ),
  nyForward(
    'rrule',
    'DTSTART;TZID=America/New_York:20260308T001000\nRRULE:FREQ=MINUTELY;INTERVAL=45',
    'every 45 minutes continues',
    '2026-03 EST 8 @00:10,00:55,01:40|2026-03 EDT 8 @03:25,04:10',
  ),
  nyBack(
    'rrule',
    'DTSTART;TZID=America/New_York:20261101T001000\nRRULE:FREQ=MINUTELY;INTERVAL=45',
    'every 45 minutes continues through the repeated hour',
    '2026-11 EDT 1 @00:10,00:55,01:40|2026-11 EST 1 @01:25,02:10',
  ),
  nyForward(
    'rrule',
    'DTSTART;TZID=America/New_York:20260307T023000\nRRULE:FREQ=HOURLY;INTERVAL=12;BYHOUR=2,14',
    'named hours follow the wall clock',
    '2026-03 EDT 8 @03:30,14:30|2026-03 EDT 9 @02:30,14:30',
  ),
  nyBack(
    'rrule',
    'DTSTART;TZID=America/New_York:20261031T003000\nRRULE:FREQ=MINUTELY;BYMINUTE=30',
    'named minutes fire once if they occur twice',
    '2026-11 EDT 1 @00:30,01:30|2026-11 EST 1 @02:30,03:30',
  ),
  nyForward(
    'rrule',
    'DTSTART;TZID=America/New_York:20260308T013000\nRRULE:FREQ=HOURLY;INTERVAL=36;BYDAY=SU,MO,FR',
    'an interval in real time selects days by the wall clock',
    '2026-03 EST 8 @01:30|2026-03 EDT 9 @14:30|2026-03 EDT 15 @14:30|2026-03 EDT 20 @02:30',
  ),
  howeForward(
    'rrule',
    'DTSTART:20261003T120000\nRRULE:FREQ=HOURLY;INTERVAL=12',
    'every twelve hours moves by the half hour',
    '2026-10 +10:30 4 @00:00|2026-10 +11:00 4 @12:30|2026-10 +11:00 5 @00:30',
  ),
  howeForward(
    'rrule',
    'DTSTART:20261003T120000\nRRULE:FREQ=HOURLY;INTERVAL=6;BYMINUTE=15',
    'a named minute keeps its place in the hour',
    '2026-10 +10:30 4 @00:15|2026-10 +11:00 4 @06:15,12:15',
  ),
  havanaForward(
    'cron',
    '0 */12 * * *',
    'a stepped midnight that does not exist is left out',
    '2026-03 -05:00 7 @12:00|2026-03 -04:00 8 @12:00|2026-03 -04:00 9 @00:00',
  ),
  havanaBack(
    'cron',
    '0 */12 * * *',
    'a stepped midnight that occurs twice fires twice',
    '2026-10 -04:00 31 @12:00|2026-11 -04:00 1 @00:00|2026-11 -05:00 1 @00:00,12:00',
  ),
  havanaForward(
    'rrule',
    'DTSTART:20260307T000000\nRRULE:FREQ=HOURLY;INTERVAL=24',
    'every 24 hours loses no day whose midnight is missing',
    '2026-03 -04:00 8-10 @01:00',
  ),
];
