import { fromIso, toIso, type Instant } from '../clock.ts';
import { invalidInput } from '../errors.ts';
import { compileSchedule, ScheduleError, type Schedule } from '../schedule/schedule.ts';
import type { TaskDefinition } from './task-definition.ts';

/** The fields of a task that determine when it fires. */
export type ScheduleRule = Pick<
  TaskDefinition,
  'schedule_kind' | 'schedule_expr' | 'timezone' | 'starts_at' | 'ends_at'
>;

/** The part of a compiled schedule that deciding fires needs. */
export type Timetable = Pick<Schedule, 'next' | 'previous' | 'countBetween'>;

/** Whether a rule repeats in a time zone other than UTC, so that another tz database may give other fires. */
export function dependsOnTzDatabase({
  schedule_kind: kind,
  schedule_expr: expr,
  timezone,
}: ScheduleRule): boolean {
  if (kind !== 'cron' && kind !== 'rrule') return false;
  return timezone !== 'UTC' || (kind === 'rrule' && expr !== null && /\bTZID=/i.test(expr));
}

/**
 * Compiles a task's schedule.
 * @param anchor when the rule was set. The rule counts from that time unless it names another start
 * @throws ScheduleError naming the field that is invalid
 */
export function compileRule(rule: ScheduleRule, anchor: string): Schedule {
  return compileSchedule({
    kind: rule.schedule_kind,
    expr: rule.schedule_expr,
    timezone: rule.timezone,
    anchor: fromIso(anchor),
    startsAt: rule.starts_at === null ? null : fromIso(rule.starts_at),
    endsAt: rule.ends_at === null ? null : fromIso(rule.ends_at),
  });
}

/** Compiles a schedule as {@link compileRule} does, for a client. @throws RefusalError `INVALID` naming the field */
export function scheduleOf(rule: ScheduleRule, anchor: string): Schedule {
  try {
    return compileRule(rule, anchor);
  } catch (error) {
    if (error instanceof ScheduleError)
      throw invalidInput([{ field: error.field, issue: error.issue }]);
    throw error;
  }
}

/**
 * The next fire of a rule that is set now; null for event tasks.
 * @throws RefusalError `INVALID` for an invalid expression, and for one without a future fire
 */
export function firstFire(rule: ScheduleRule, anchor: string, now: Instant): string | null {
  const schedule = scheduleOf(rule, anchor);
  if (rule.schedule_kind === 'event') return null;
  const next = schedule.next(now);
  if (next !== null) return toIso(next.at);
  const issue = `has no future fire${whyNone(rule, anchor, now)}`;
  throw invalidInput([{ field: 'schedule_expr', issue }]);
}

/** The reason why a rule does not fire, if the rule itself does not show it; empty if there is none. */
function whyNone(rule: ScheduleRule, anchor: string, now: Instant): string {
  if (rule.ends_at !== null) {
    const unbounded = scheduleOf({ ...rule, ends_at: null }, anchor).next(now);
    if (unbounded !== null) return `: its next, ${toIso(unbounded.at)}, is after ends_at`;
  }
  if (rule.starts_at !== null) {
    const last = scheduleOf({ ...rule, starts_at: null }, anchor).previous(fromIso(rule.starts_at));
    if (last !== null && last.at > now) return `: its last, ${toIso(last.at)}, is before starts_at`;
  }
  if (rule.schedule_kind === 'once') return ': that time has passed';
  const last = scheduleOf(rule, anchor).previous(now + 1);
  return last === null ? '' : `: its last was ${toIso(last.at)}`;
}
