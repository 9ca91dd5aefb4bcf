import type { Instant } from '../../clock.ts';
import { HOUR, modulo, SECOND } from '../civil.ts';
import { EvenFires } from '../even-fires.ts';
import { PhasedFires } from '../phased-fires.ts';
import { positionIndexes } from './set-position-rule.ts';
import { makeSlotRule } from './rrule-rule.ts';
import type { RruleParts } from './rrule-parts.ts';
import type { WallRule } from '../wall-rule.ts';
import { MAX_SHIFT, type Zone } from '../zone.ts';
import type { FireSource } from '../zoned-fires.ts';

const MINUTE = 60 * SECOND;

/** Where an elapsed rule begins. */
export interface ElapsedStart {
  readonly zone: Zone;
  /** DTSTART as a wall time of the zone. */
  readonly wall: number;
  /** The same as an instant. */
  readonly instant: Instant;
}

/**
 * Whether a rule follows elapsed time: it names no hour of the day, nor, by the minute, a minute of the hour. Any other
 * rule names wall times, like a daily one.
 */
export function isElapsed({ freq, hours, minutes }: RruleParts): boolean {
  if (freq === 'HOURLY') return hours === null;
  return freq === 'MINUTELY' && hours === null && minutes === null;
}

/**
 * The fires of an elapsed rule, from any time before its start on. Its INTERVAL is counted in real time from DTSTART.
 * BYMINUTE (of an hourly rule), BYSECOND and the day parts name wall times; a rule without them has no wall time at all.
 *
 * An hour of a rule with BYMINUTE is an hour of the wall clock; every n-th counts, by the hours that have passed.
 * @throws ScheduleError when its evaluation could not be bounded
 */
export function elapsedFires(parts: RruleParts, start: ElapsedStart): FireSource {
  const { zone, wall, instant } = start;
  const { freq, interval, months, yearDays, monthDays, weekdays } = parts;
  const inHours = freq === 'HOURLY' && parts.minutes !== null;
  const step = interval * (freq === 'HOURLY' ? HOUR : MINUTE);
  const seconds = secondsWithin(parts, wall, inHours);
  const isLimited = [months, yearDays, monthDays, weekdays].some((part) => part !== null);
  const begun = instant - modulo(wall, MINUTE);
  if (!isLimited && !inHours) return new EvenFires({ zone, begun, step, seconds });
  const unit = inHours ? HOUR : MINUTE;
  const rules = new Map<number, WallRule>();
  const phaseOf = (offset: number): number => begun + offset - modulo(begun + offset, unit);
  const ruleOf = (offset: number): WallRule => {
    const first = phaseOf(offset);
    const phase = modulo(first, step);
    let rule = rules.get(phase);
    if (rule === undefined) {
      // A zone may be on the other side of the date line by then.
      const from = wall - 2 * MAX_SHIFT;
      rule = makeSlotRule(parts, { first, step, seconds }, from);
      rules.set(phase, rule);
    }
    return rule;
  };
  const fires = new PhasedFires({ zone, ruleOf, phaseOf, step, start: instant });
  // Here, so that a rule that can't be evaluated, or fires so rarely that this takes long, is refused when it is compiled.
  fires.next(instant);
  return fires;
}

/** The seconds within one hour or minute at which the rule fires, in order. */
function secondsWithin(parts: RruleParts, start: number, inHours: boolean): number[] {
  const seconds = parts.seconds ?? [modulo(start, MINUTE) / SECOND];
  const minutes = inHours ? (parts.minutes ?? []) : [0];
  const all = [...new Set(minutes.flatMap((minute) => seconds.map((s) => minute * 60 + s)))];
  all.sort((a, b) => a - b);
  if (parts.positions === null) return all;
  return positionIndexes(parts.positions, all.length).map((index) => all[index] ?? 0);
}
