import type { Instant } from '../../clock.ts';
import { DAY, SECOND } from '../civil.ts';
import { AmendedFires, BoundedFires, type Span } from '../fire-sets.ts';
import { lastOfCount } from './rrule-count.ts';
import { parseRruleParts, type RruleParts } from './rrule-parts.ts';
import { makeRruleRule } from './rrule-rule.ts';
import { parseRecurrence, type IcalTime, type RecurrenceText } from './rrule-text.ts';
import { MAX_SHIFT, type Zone } from '../zone.ts';
import { ZonedFires, type FireSource } from '../zoned-fires.ts';

/** An RFC 5545 recurrence, ready to be asked. */
export interface CompiledRrule {
  readonly fires: FireSource;
  /** DTSTART's own zone, where it has one. */
  readonly zone: Zone;
  readonly warnings: readonly string[];
}

/**
 * Compiles an RFC 5545 recurrence: an RRULE with optional DTSTART, EXDATE and RDATE. Without
 * DTSTART it starts at the anchor, cut to the second, in the zone given.
 *
 * - COUNT counts the rule's fires from its start, those that EXDATE takes out included; RDATE adds
 *   to them. Neither is bound by COUNT and UNTIL.
 * - UNTIL and EXDATE without a time of day mean the whole day; RDATE then means midnight.
 * @throws ScheduleError naming the part that is wrong, or saying why it can't be evaluated.
 */
export function compileRrule(expr: string, taskZone: Zone, anchor: Instant): CompiledRrule {
  const text = parseRecurrence(expr);
  const parts = parseRruleParts(text.rule);
  const warnings = warningsOf(text, parts, taskZone);
  const zone = text.dtstart?.zone ?? taskZone;
  const elapsed = parts.freq === 'HOURLY' || parts.freq === 'MINUTELY';
  const anchorSecond = Math.floor(anchor / SECOND) * SECOND;
  const start = text.dtstart?.wall ?? anchorSecond + zone.offsetAt(anchorSecond);
  const startInstant = text.dtstart === null ? anchorSecond : zone.resolve(start).at;
  // In a repeated hour the second pass has earlier wall times: the bound below is what counts.
  const bare = makeRruleRule(parts, start, elapsed ? start - MAX_SHIFT : start);
  const zoned = new ZonedFires(bare.rule, zone, elapsed);
  let last: Instant | null = null;
  if (parts.until !== null) {
    last = untilInstant(parts.until, zone);
  } else if (parts.count !== null) {
    const counted = { ...bare, zoned, zone, elapsed, start, startInstant };
    last = lastOfCount(counted, parts.count);
  }
  const bounded = new BoundedFires(zoned, startInstant, last);
  const excluded = text.exdates.flatMap((time) => excludedSpans(time, zone));
  const added = text.rdates.map((time) => (time.zone ?? zone).resolve(time.wall).at);
  const fires =
    excluded.length + added.length > 0 ? new AmendedFires(bounded, excluded, added) : bounded;
  return { fires, zone, warnings };
}

/**
 * What the author of a recurrence may not have meant. It takes reading it, and no compiling.
 * @throws ScheduleError as {@link compileRrule}
 */
export function rruleWarnings(expr: string, taskZone: Zone): readonly string[] {
  const text = parseRecurrence(expr);
  return warningsOf(text, parseRruleParts(text.rule), taskZone);
}

function warningsOf(text: RecurrenceText, parts: RruleParts, taskZone: Zone): readonly string[] {
  const warnings: string[] = [];
  const zone = text.dtstart?.zone ?? taskZone;
  if (!sameZone(zone, taskZone)) {
    warnings.push(`DTSTART's zone ${zone.name} is used, not the timezone ${taskZone.name}`);
  }
  if (parts.until?.dateOnly === true) {
    warnings.push('UNTIL is a date: that whole day is included');
  }
  // A rule without BY-parts takes its start, whatever that is.
  if (parts.count !== null && text.dtstart === null && !/(?:^|;)\s*BY/i.test(text.rule)) {
    warnings.push(
      `COUNT=${parts.count} counts the moment at which the rule is set as the first, so that ` +
        `${parts.count - 1} more ${parts.count === 2 ? 'comes' : 'come'}; a DTSTART says from when to count`,
    );
  }
  return warnings;
}

/** The last instant that UNTIL allows. */
function untilInstant(until: IcalTime, zone: Zone): Instant {
  const own = until.zone ?? zone;
  return until.dateOnly ? own.resolve(until.wall + DAY).at - 1 : own.resolve(until.wall).at;
}

/** What an EXDATE takes out: an instant (both, where its wall time comes twice), or a whole day. */
function excludedSpans(time: IcalTime, zone: Zone): Span[] {
  const own = time.zone ?? zone;
  const { at, again } = own.resolve(time.wall);
  if (time.dateOnly) return [{ from: at, to: own.resolve(time.wall + DAY).at }];
  const spans = [{ from: at, to: at + 1 }];
  if (again !== null) spans.push({ from: again, to: again + 1 });
  return spans;
}

function sameZone(a: Zone, b: Zone): boolean {
  const key = ({ name }: Zone): string => name.toLowerCase().replace(/^etc\//, '');
  return key(a) === key(b);
}
