import { fromIso, toIso, type Instant } from '../clock.ts';
import {
  nextFireOf,
  nextRunOf,
  type FiringDefinition,
  type BacklogSpan,
  type ScheduleState,
} from './schedule-state.ts';
import type { Timetable } from './task-schedule.ts';

/** A span of the backlog, and the spans after it. */
export interface BacklogHead {
  readonly span: BacklogSpan;
  readonly later: readonly BacklogSpan[];
  /** The timetable of the first span's rule. */
  readonly timetable: Timetable;
}

/**
 * The span to decide next: the first span with the first span's rule that still contains a fire. If there is none, the
 * first span.
 */
export function headOf(schedule: ScheduleState, timetable: Timetable): BacklogHead {
  const spans = schedule.owed;
  const [first] = spans;
  if (first === undefined) throw new Error('the backlog is empty');
  const decided = schedule.fires?.decided ?? null;
  const decidedUpTo = decided === null ? Number.NEGATIVE_INFINITY : fromIso(decided);
  for (const [index, span] of spans.entries()) {
    if (!isSameRule(span, first)) break;
    const fire = timetable.next(Math.max(fromIso(span.from) - 1, decidedUpTo))?.at ?? null;
    if (fire !== null && fire <= fromIso(span.to)) {
      return { span, later: spans.slice(index + 1), timetable };
    }
  }
  return { span: first, later: spans.slice(1), timetable };
}

/** The task revision on which the event that completes a span rests, and the fire that follows. */
export interface Completion {
  readonly task_revision: number;
  readonly next_fire_at: string | null;
}

/** The completion of a span. It also settles the following spans in which the rule has no fire. */
export function completionOf(schedule: ScheduleState, head: BacklogHead): Completion {
  let revision = head.span.until;
  for (const span of head.later) {
    const first = firstFireIn(span, head);
    if (first !== null) {
      // Spans that end with the same event are settled one by one.
      const task_revision = Math.min(revision, span.until - 1);
      return { task_revision, next_fire_at: toIso(first) };
    }
    revision = span.until;
  }
  return { task_revision: schedule.task_revision, next_fire_at: schedule.set.next_fire_at };
}

/** Whether a newer fire that a pause held back will run. */
export function runsLaterHeld(head: BacklogHead): boolean {
  return head.later.some(
    (span) =>
      span.reason === 'paused' && span.policy !== 'skip' && firstFireIn(span, head) !== null,
  );
}

/** Missed fires after a span. */
export interface LaterMissed {
  readonly definition: FiringDefinition;
  /** When the first of them was due. */
  readonly due: Instant;
}

/** The missed fires after a span: those of the other spans of the backlog, and those by the rule in force. */
export function laterMissed(
  schedule: ScheduleState,
  head: BacklogHead,
  now: Instant,
): readonly LaterMissed[] {
  const missed = head.later.flatMap((span) => {
    const first = span.reason === 'missed' ? firstFireIn(span, head) : null;
    if (first === null) return [];
    const due = span.run_at === undefined ? first : fromIso(span.run_at);
    return [{ definition: span.definition, due }];
  });
  const runAt = nextFireOf(schedule) === null ? null : nextRunOf(schedule);
  if (runAt === null || fromIso(runAt) > now) return missed;
  return [...missed, { definition: schedule.definition, due: fromIso(runAt) }];
}

/**
 * The first fire of a later span; null if it has none. In a span of another rule, the search starts at the beginning of
 * that span.
 */
function firstFireIn(span: BacklogSpan, head: BacklogHead): Instant | null {
  const from = fromIso(span.from);
  if (!isSameRule(span, head.span)) return from;
  const first = head.timetable.next(from - 1)?.at ?? null;
  return first === null || first > fromIso(span.to) ? null : first;
}

function isSameRule(one: BacklogSpan, other: BacklogSpan): boolean {
  const fields = ['schedule_kind', 'schedule_expr', 'timezone', 'starts_at', 'ends_at'] as const;
  return (
    one.anchor === other.anchor &&
    fields.every((field) => one.definition[field] === other.definition[field])
  );
}
