import { fromIso, toIso, type Instant } from '../clock.ts';
import type { Timetable } from './fires.ts';
import type { Completion } from './fires-writer.ts';
import {
  nextFireOf,
  nextRunOf,
  type FiringDefinition,
  type OwedSpan,
  type Rhythm,
} from './rhythm.ts';

/**
 * The span to decide next of those that are owed, and those behind it: the first of its rule in which a fire is left;
 * where there is none, the first.
 * @param rhythm one that owes something
 * @param timetable of its first span
 */
export function owedFirst(
  { owed, fires }: Pick<Rhythm, 'owed' | 'fires'>,
  timetable: Timetable,
): { readonly owed: OwedSpan; readonly later: readonly OwedSpan[] } {
  const [first, ...behind] = owed;
  if (first === undefined) throw new Error('nothing is owed');
  const decided = fires?.decided ?? null;
  const decidedUpTo = decided === null ? Number.NEGATIVE_INFINITY : fromIso(decided);
  for (const [index, span] of owed.entries()) {
    if (!isSameRule(span, first)) break;
    const fire = timetable.next(Math.max(fromIso(span.from) - 1, decidedUpTo))?.at ?? null;
    if (fire !== null && fire <= fromIso(span.to)) {
      return { owed: span, later: owed.slice(index + 1) };
    }
  }
  return { owed: first, later: behind };
}

/**
 * What the event that completes a span rests on, and the fire that follows it. With it go the spans behind it in which
 * the rule has no fire.
 */
export function completionOf(
  rhythm: Rhythm,
  owed: OwedSpan,
  later: readonly OwedSpan[],
  timetable: Timetable,
): Completion {
  let revision = owed.until;
  for (const then of later) {
    const first = firstOf(then, owed, timetable);
    if (first !== null) {
      // Spans that end with the same event go as they are decided.
      const task_revision = Math.min(revision, then.until - 1);
      return { task_revision, next_fire_at: toIso(first) };
    }
    revision = then.until;
  }
  return { task_revision: rhythm.task_revision, next_fire_at: rhythm.set.next_fire_at };
}

/** Whether of what a pause held back behind a span a fire runs, which is newer. */
export function runsLaterHeld(
  owed: OwedSpan,
  later: readonly OwedSpan[],
  timetable: Timetable,
): boolean {
  return later.some(
    (span) =>
      span.reason === 'paused' && span.policy !== 'skip' && firstOf(span, owed, timetable) !== null,
  );
}

/** Fires that are missed behind a span. */
export interface LaterMissed {
  readonly definition: FiringDefinition;
  /** Since when the first of them is late. */
  readonly late: Instant;
}

/** What is missed behind a span: of what else is owed, and by the rule in force. */
export function laterMissed(
  rhythm: Rhythm,
  owed: OwedSpan,
  later: readonly OwedSpan[],
  timetable: Timetable,
  now: Instant,
): readonly LaterMissed[] {
  const spans = later.flatMap((span) => {
    const first = span.reason === 'missed' ? firstOf(span, owed, timetable) : null;
    if (first === null) return [];
    const late = span.run_at === undefined ? first : fromIso(span.run_at);
    return [{ definition: span.definition, late }];
  });
  const runAt = nextFireOf(rhythm) === null ? null : nextRunOf(rhythm);
  if (runAt === null || fromIso(runAt) > now) return spans;
  return [...spans, { definition: rhythm.definition, late: fromIso(runAt) }];
}

/** The first fire of a span that stands behind another, whose timetable it is; null where it has none. */
function firstOf(span: OwedSpan, owed: OwedSpan, timetable: Timetable): Instant | null {
  const from = fromIso(span.from);
  if (!isSameRule(span, owed)) return from;
  const first = timetable.next(from - 1)?.at ?? null;
  return first === null || first > fromIso(span.to) ? null : first;
}

/** Whether the fires of two spans are the same. */
function isSameRule(one: OwedSpan, other: OwedSpan): boolean {
  const fields = ['schedule_kind', 'schedule_expr', 'timezone', 'starts_at', 'ends_at'] as const;
  return (
    one.anchor === other.anchor &&
    fields.every((field) => one.definition[field] === other.definition[field])
  );
}
