import type { Instant } from '../../clock.ts';
import { formatWall } from '../civil.ts';
import type { FireSource, Span } from '../fire-sets.ts';
import type { Zone } from '../zone.ts';
import { MAX_COUNT } from './rrule-count.ts';
import { parseRruleParts, type RruleParts } from './rrule-parts.ts';
import { parseRecurrence, type IcalTime, type Recurrence } from './recurrence.ts';

/**
 * The warnings that parsing a recurrence can find.
 * @throws ScheduleError as {@link compileRrule}
 */
export function rruleWarnings(expr: string, taskZone: Zone): readonly string[] {
  const text = parseRecurrence(expr);
  return warningsOf(text, parseRruleParts(text.rule), taskZone);
}

/** Whether compiling a recurrence may find more warnings than parsing it. */
export function needsCounting(expr: string): boolean {
  return /EXDATE|COUNT/i.test(expr);
}

/** Like {@link rruleWarnings}, for a parsed recurrence. */
export function warningsOf(text: Recurrence, parts: RruleParts, taskZone: Zone): readonly string[] {
  const warnings: string[] = [...text.warnings];
  const zone = text.dtstart?.zone ?? taskZone;
  if (!sameZone(zone, taskZone)) {
    warnings.push(`DTSTART's zone ${zone.name} is used, not the timezone ${taskZone.name}`);
  }
  if (parts.until?.dateOnly === true) {
    warnings.push('UNTIL is a date, so that whole day is included');
  }
  // Without BY-parts, a rule always fires at its start.
  const isCounted = parts.count !== null && parts.count <= MAX_COUNT;
  if (isCounted && text.dtstart === null && !/(?:^|;)\s*BY/i.test(text.rule)) {
    warnings.push(
      `COUNT=${parts.count} counts the time at which the rule is set as the first fire, so ` +
        `${parts.count - 1} more ${parts.count === 2 ? 'follows' : 'follow'}; set DTSTART to count from another time`,
    );
  }
  return warnings;
}

/** Warning for a COUNT above the limit. */
export const COUNT_TOO_LARGE = 'COUNT is too large to count and is ignored';

/** Warns about fires before starts_at, which count for COUNT but do not run. */
export function firesBeforeStart(
  startsAt: Instant,
  start: Instant,
  rule: FireSource,
  count: number,
): string[] {
  const before = rule.count(start, startsAt);
  if (before === 0) return [];
  const left = Math.max(0, count - before);
  const early = before === 1 ? '1 of its fires is' : `${before} of its fires are`;
  const remain = left === 1 ? '1 remains' : `${left} remain`;
  return [`COUNT=${count} counts from the rule's start, but ${early} before starts_at; ${remain}`];
}

/** The most EXDATEs listed in a warning. */
const MAX_LISTED_EXDATES = 3;

/** Warns about EXDATEs that remove no fire. */
export function uselessExdates(
  exdates: readonly IcalTime[],
  spans: readonly (readonly Span[])[],
  rule: FireSource,
  added: readonly Instant[],
): string[] {
  const isUseless = (own: readonly Span[]): boolean =>
    own.every(({ from, to }) => {
      const next = rule.next(from);
      return (next === null || next >= to) && !added.some((at) => at >= from && at < to);
    });
  const useless = exdates.filter((_, index) => isUseless(spans[index] ?? []));
  if (useless.length === 0) return [];
  const named = useless
    .slice(0, MAX_LISTED_EXDATES)
    .map(({ wall, dateOnly }) => (dateOnly ? formatWall(wall).slice(0, 10) : formatWall(wall)));
  const more =
    useless.length > MAX_LISTED_EXDATES ? ` and ${useless.length - MAX_LISTED_EXDATES} more` : '';
  const removes = useless.length === 1 ? 'removes' : 'remove';
  return [
    `EXDATE: ${useless.length} of ${exdates.length} ${removes} nothing ` +
      `because the rule does not fire then: ${named.join(', ')}${more}`,
  ];
}

function sameZone(a: Zone, b: Zone): boolean {
  const key = ({ name }: Zone): string => name.toLowerCase().replace(/^etc\//, '');
  return key(a) === key(b);
}
