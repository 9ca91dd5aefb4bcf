import type { Instant } from '../../clock.ts';
import type { ScheduleKind } from '../../vocabulary.ts';
import { resolveTimestamp } from '../timestamp.ts';
import { zoneOf, type Zone } from '../zone.ts';
import { cronWords } from './cron-words.ts';
import { rruleWords } from './rrule-words.ts';

/** The most characters of a schedule in words. */
export const MAX_SCHEDULE_TEXT = 400;

/** The most characters of an expression or zone that is quoted because no words describe it. */
const MAX_QUOTED = 180;

/** The parts of a schedule that its words depend on. */
export interface DescribedSchedule {
  readonly kind: ScheduleKind;
  readonly expr: string | null;
  readonly timezone: string;
  /** When the expression was last set; an rrule without DTSTART takes missing parts from it. */
  readonly anchor: Instant;
}

/**
 * A schedule in words: "every weekday at 09:00, Europe/Berlin". Quotes the expression if no words describe the whole
 * schedule. Covers only the expression, not `starts_at`, `ends_at`, `max_runs` or the task's status.
 *
 * Never throws, even for an expression that is no longer valid. At most {@link MAX_SCHEDULE_TEXT} characters.
 */
export function scheduleText(schedule: DescribedSchedule): string {
  if (schedule.kind === 'event') return eventText(schedule.expr);
  const zone = zoneOf(schedule.timezone);
  const text = zone === null ? null : inWords(schedule, schedule.expr ?? '', zone);
  return text !== null && text.length <= MAX_SCHEDULE_TEXT ? text : quoted(schedule);
}

/** null if there are no words, or the expression is invalid. */
function inWords(schedule: DescribedSchedule, expr: string, zone: Zone): string | null {
  try {
    if (schedule.kind === 'once') return onceText(expr, zone);
    if (schedule.kind === 'cron') {
      const words = cronWords(expr);
      return words === null ? null : `${words}, ${zone.name}`;
    }
    const { words, zone: own } = rruleWords(expr, zone, schedule.anchor);
    return words === null ? null : `${words}, ${own.name}`;
  } catch {
    // Tasks must be listed even if an expression is no longer valid or a library fails.
    return null;
  }
}

function onceText(expr: string, zone: Zone): string {
  const { at } = resolveTimestamp(expr, zone.name);
  const [date = '', time = ''] = zone.localText(at).split('T');
  // Drops the offset, and seconds that are 0.
  const clock = time.replace(/[+-]\d{2}:\d{2}(?::\d{2})?$/, '').replace(/^(\d{2}:\d{2}):00$/, '$1');
  return `once, on ${date} at ${clock}, ${zone.name}`;
}

function eventText(pattern: string | null): string {
  if (pattern === null || pattern === '#') return 'when any event is published';
  return `when an event on ${cut(pattern)} is published`;
}

const quotedAs = {
  event: 'the topic pattern',
  cron: 'the cron expression',
  rrule: 'the RFC 5545 rule',
  once: 'the time',
} as const;

function quoted({ kind, expr, timezone }: DescribedSchedule): string {
  return `by ${quotedAs[kind]} ${cut(expr ?? '')}, ${cut(timezone)}`;
}

function cut(text: string): string {
  const line = text.trim().replaceAll(/\s+/g, ' ');
  return line.length > MAX_QUOTED ? `${line.slice(0, MAX_QUOTED - 1)}…` : line;
}
