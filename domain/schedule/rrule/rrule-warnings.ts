import type { Instant } from '../../clock.ts';
import { wallText } from '../civil.ts';
import type { Span } from '../fire-sets.ts';
import type { Zone } from '../zone.ts';
import type { FireSource } from '../zoned-fires.ts';
import { MOST_COUNTED } from './rrule-count.ts';
import { parseRruleParts, type RruleParts } from './rrule-parts.ts';
import { parseRecurrence, type IcalTime, type RecurrenceText } from './rrule-text.ts';

/**
 * What the author of a recurrence may not have meant, as far as reading it tells.
 * @throws ScheduleError as {@link compileRrule}
 */
export function rruleWarnings(expr: string, taskZone: Zone): readonly string[] {
  const text = parseRecurrence(expr);
  return warningsOf(text, parseRruleParts(text.rule), taskZone);
}

/** Whether more warnings may come of compiling a recurrence than of reading it. */
export function needsCounting(expr: string): boolean {
  return /EXDATE|COUNT/i.test(expr);
}

/** The same of a recurrence that has been read. */
export function warningsOf(
  text: RecurrenceText,
  parts: RruleParts,
  taskZone: Zone,
): readonly string[] {
  const warnings: string[] = [...text.warnings];
  const zone = text.dtstart?.zone ?? taskZone;
  if (!sameZone(zone, taskZone)) {
    warnings.push(`DTSTART's zone ${zone.name} is used, not the timezone ${taskZone.name}`);
  }
  if (parts.until?.dateOnly === true) {
    warnings.push('UNTIL is a date: that whole day is included');
  }
  // A rule without BY-parts takes its start, whatever that is.
  const isCounted = parts.count !== null && parts.count <= MOST_COUNTED;
  if (isCounted && text.dtstart === null && !/(?:^|;)\s*BY/i.test(text.rule)) {
    warnings.push(
      `COUNT=${parts.count} counts the moment at which the rule is set as the first, so that ` +
        `${parts.count - 1} more ${parts.count === 2 ? 'comes' : 'come'}; a DTSTART says from when to count`,
    );
  }
  return warnings;
}

/** Of a COUNT that is the same as none. */
export const TOO_LARGE = 'COUNT is too large to count: the rule goes on as if it had none';

/** Tells of fires that COUNT counts and that starts_at does not let run. */
export function cutOffBy(
  startsAt: Instant,
  start: Instant,
  rule: FireSource,
  count: number,
): string[] {
  const before = rule.count(start, startsAt);
  if (before === 0) return [];
  const left = Math.max(0, count - before);
  const lie = before === 1 ? '1 of these fires lies' : `${before} of these fires lie`;
  const remain = left === 1 ? '1 remains' : `${left} remain`;
  return [`COUNT=${count} counts from the rule's start: ${lie} before starts_at, and ${remain}`];
}

/** EXDATEs that a warning names. */
const MOST_NAMED = 3;

/** Tells of EXDATEs at which there is no fire to take out. */
export function vainExdates(
  exdates: readonly IcalTime[],
  spans: readonly (readonly Span[])[],
  rule: FireSource,
  added: readonly Instant[],
): string[] {
  const isVain = (own: readonly Span[]): boolean =>
    own.every(({ from, to }) => {
      const next = rule.next(from);
      return (next === null || next >= to) && !added.some((at) => at >= from && at < to);
    });
  const vain = exdates.filter((_, index) => isVain(spans[index] ?? []));
  if (vain.length === 0) return [];
  const named = vain
    .slice(0, MOST_NAMED)
    .map(({ wall, dateOnly }) => (dateOnly ? wallText(wall).slice(0, 10) : wallText(wall)));
  const more = vain.length > MOST_NAMED ? ` and ${vain.length - MOST_NAMED} more` : '';
  const removes = vain.length === 1 ? 'removes' : 'remove';
  return [
    `EXDATE: ${vain.length} of ${exdates.length} ${removes} nothing, ` +
      `since the rule does not fire then: ${named.join(', ')}${more}`,
  ];
}

function sameZone(a: Zone, b: Zone): boolean {
  const key = ({ name }: Zone): string => name.toLowerCase().replace(/^etc\//, '');
  return key(a) === key(b);
}
