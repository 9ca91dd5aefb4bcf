import type { Instant } from '../../clock.ts';
import { HOUR, modulo, SECOND, sortedUnique } from '../civil.ts';
import type { FireSource } from '../fire-sets.ts';
import { IntervalFires } from '../interval-fires.ts';
import { PhasedFires } from '../phased-fires.ts';
import { positionIndexes } from './set-position-rule.ts';
import { createSlotRule } from './wall-rules.ts';
import type { RruleParts } from './rrule-parts.ts';
import { SharedYears } from './rrule-year.ts';
import type { WallRule } from '../wall-rule.ts';
import { MAX_SHIFT, type Zone } from '../zone.ts';

const MINUTE = 60 * SECOND;

/** The start of an elapsed rule. */
export interface ElapsedStart {
  readonly zone: Zone;
  /** DTSTART as a wall time of the zone. */
  readonly wall: number;
  /** DTSTART as an instant. */
  readonly instant: Instant;
}

/**
 * Whether a rule follows elapsed time: an hourly rule without BYHOUR, or a rule by the minute
 * without BYHOUR and BYMINUTE. Any other rule names wall times, as a daily one does.
 */
export function isElapsed({ freq, hours, minutes }: RruleParts): boolean {
  if (freq === 'HOURLY') return hours === null;
  return freq === 'MINUTELY' && hours === null && minutes === null;
}

/**
 * The fires of an elapsed rule, not bounded by its start. INTERVAL counts real time from DTSTART. BYMINUTE (of an
 * hourly rule), BYSECOND and the day parts name wall times.
 *
 * An hourly rule with BYMINUTE fires within hours of the wall clock. Every n-th of these hours, by elapsed time,
 * counts.
 * @throws ScheduleError if its evaluation cannot be bounded
 */
export function elapsedFires(parts: RruleParts, start: ElapsedStart): FireSource {
  const { zone, wall, instant } = start;
  const { freq, interval, months, yearDays, monthDays, weekdays } = parts;
  const inHours = freq === 'HOURLY' && parts.minutes !== null;
  const step = interval * (freq === 'HOURLY' ? HOUR : MINUTE);
  const seconds = secondsWithin(parts, wall, inHours);
  const isLimited = [months, yearDays, monthDays, weekdays].some((part) => part !== null);
  const origin = instant - modulo(wall, MINUTE);
  if (!isLimited && !inHours) return new IntervalFires({ zone, origin, step, seconds });
  const unit = inHours ? HOUR : MINUTE;
  const rules = new Map<number, WallRule>();
  const years = new SharedYears(parts);
  const phaseOf = (offset: number): number => origin + offset - modulo(origin + offset, unit);
  const ruleOf = (offset: number): WallRule => {
    const first = phaseOf(offset);
    const phase = modulo(first, step);
    let rule = rules.get(phase);
    if (rule === undefined) {
      // By that time, the zone may have crossed the date line.
      const from = wall - 2 * MAX_SHIFT;
      rule = createSlotRule(parts, { first, step, seconds }, from, years);
      rules.set(phase, rule);
    }
    return rule;
  };
  const fires = new PhasedFires({ zone, ruleOf, phaseOf, step, start: instant });
  // Searches now, so compiling rejects a rule that cannot be evaluated or takes too long.
  fires.next(instant);
  return fires;
}

/** The seconds within an hour or minute at which the rule fires, ascending. */
function secondsWithin(parts: RruleParts, start: number, inHours: boolean): number[] {
  const seconds = parts.seconds ?? [modulo(start, MINUTE) / SECOND];
  const minutes = inHours ? (parts.minutes ?? []) : [0];
  const all = sortedUnique(minutes.flatMap((minute) => seconds.map((s) => minute * 60 + s)));
  if (parts.positions === null) return all;
  return positionIndexes(parts.positions, all.length).map((index) => all[index] ?? 0);
}
