import { fromIso, toIso, type Instant } from '../../domain/clock.ts';
import { compileRule } from '../../scheduler/fires/due-index.ts';
import { tooLateUpTo } from '../../domain/tasks/grace.ts';
import { nextFireOf, nextRunOf, type Rhythm } from '../../domain/tasks/rhythm.ts';
import { ScheduleError, type FireCount } from '../../domain/schedule/schedule.ts';
import type { MisfirePolicy } from '../../domain/vocabulary.ts';

/** Most runs that one decision asks for where all missed fires are to run; the older are recorded. */
const MOST_AT_ONCE = 100;

/** What one task owes: its nominal times that are due and not decided. */
export interface OwedByTask {
  readonly task_id: string;
  readonly count: number;
  readonly first: string;
  readonly last: string;
  /** What becomes of them where a release says nothing. */
  readonly policy: MisfirePolicy;
  /** How many runs come of them: by the task's own policy, and where the release says so for all. */
  readonly runs: Readonly<Record<'own' | MisfirePolicy, number>>;
}

/** Fires of one rule that are due and not decided, and what is to become of them, where that is said already. */
interface Stretch {
  readonly rule: Pick<Rhythm, 'definition' | 'anchor'>;
  readonly from: Instant;
  readonly to: Instant;
  readonly said: MisfirePolicy | null;
  /** When its first fire was to run that was put off; null for the time of the fire. */
  readonly putOffTo: Instant | null;
}

/** A stretch in which fires are due, with them. */
interface DueStretch extends Stretch {
  readonly count: number;
  readonly first: Instant;
  readonly last: Instant;
}

/**
 * What an active task owes at a moment, also by rules that it had before; null where nothing is due, or its rules
 * can't be evaluated here.
 */
export function owedBy(taskId: string, rhythm: Rhythm, now: Instant): OwedByTask | null {
  if (rhythm.status !== 'active') return null;
  const { misfire_policy: policy, max_runs } = rhythm.definition;
  const left = Math.max(0, (max_runs ?? Infinity) - (rhythm.fires?.fire_count ?? 0));
  const runs = { own: 0, skip: 0, latest: 0, all: 0 };
  const ends: Instant[] = [];
  let count = 0;
  const stretches = stretchesOf(rhythm, now).flatMap((stretch) => dueOf(stretch));
  for (const [index, due] of stretches.entries()) {
    count += due.count;
    ends.push(due.first, due.last);
    const made = runsOf(due, stretches.slice(index + 1), now);
    for (const each of ['own', 'skip', 'latest', 'all'] as const) {
      runs[each] = Math.min(left, runs[each] + made[each]);
    }
  }
  const [first, last] = [ends[0], ends.at(-1)];
  if (first === undefined || last === undefined) return null;
  return { task_id: taskId, count, first: toIso(first), last: toIso(last), policy, runs };
}

/** In the order of their times: by rules before a change, or held back by a pause, then by the rule in force. */
function stretchesOf(rhythm: Rhythm, now: Instant): readonly Stretch[] {
  const decided = rhythm.fires?.decided ?? null;
  const undecided = decided === null ? Number.NEGATIVE_INFINITY : fromIso(decided) + 1;
  const stretches: Stretch[] = rhythm.owed.map((span) => ({
    rule: span,
    from: Math.max(fromIso(span.from), undecided),
    to: fromIso(span.to),
    // What came due behind a fire that was put off does not run, whatever is said.
    said: span.reason === 'snoozed' ? 'skip' : span.policy,
    putOffTo: span.run_at === undefined ? null : fromIso(span.run_at),
  }));
  const next = nextFireOf(rhythm);
  const runAt = nextRunOf(rhythm);
  if (next !== null && runAt !== null && fromIso(runAt) <= now) {
    stretches.push(...stretchesOfNext(rhythm, fromIso(next), fromIso(runAt), now));
  }
  return stretches;
}

/** What is due by the rule in force: of a fire that was put off, itself, what came due behind it, and what did since. */
function stretchesOfNext(
  rule: Stretch['rule'],
  next: Instant,
  runAt: Instant,
  now: Instant,
): readonly Stretch[] {
  const whole = { rule, from: next, to: now, said: null, putOffTo: null } as const;
  if (runAt === next) return [whole];
  return [
    { ...whole, to: next, putOffTo: runAt },
    { ...whole, from: next + 1, to: runAt, said: 'skip' },
    { ...whole, from: runAt + 1 },
  ];
}

/** A stretch with its fires; none where nothing is due in it. */
function dueOf(stretch: Stretch): readonly DueStretch[] {
  const due = countDue(stretch, stretch.to);
  if (due === null || due.first === null || due.last === null) return [];
  return [{ ...stretch, count: due.count, first: due.first, last: due.last }];
}

/** How many runs come of a stretch: of the latest alone, one, and none where a newer one of those behind it runs. */
function runsOf(
  stretch: DueStretch,
  behind: readonly DueStretch[],
  now: Instant,
): OwedByTask['runs'] {
  const { said, rule, count } = stretch;
  const all = Math.min(count, MOST_AT_ONCE);
  // What a pause held back is decided as its resume has said, whatever a release says.
  if (said !== null) {
    const isNewest = behind.every((later) => later.said === null || later.said === 'skip');
    const made = { skip: 0, latest: isNewest ? 1 : 0, all }[said];
    return { own: made, skip: made, latest: made, all: made };
  }
  const missed = behind.filter((later) => later.said === null);
  const { misfire_policy: policy } = rule.definition;
  // What is hardly late runs, whatever the policy says.
  const inTime = count - lateOf(stretch, now);
  const isNewest = missed.every(
    (later) =>
      later.rule.definition.misfire_policy === 'skip' &&
      (later.putOffTo ?? later.first) <= tooLateUpTo(later.rule.definition, now),
  );
  const own = { skip: inTime, latest: inTime > 0 || !isNewest ? inTime : 1, all }[policy];
  return { own, skip: 0, latest: missed.length === 0 ? 1 : 0, all };
}

/** How many fires of a stretch are later than their grace. */
function lateOf(stretch: DueStretch, now: Instant): number {
  const { to, putOffTo, count } = stretch;
  const upTo = tooLateUpTo(stretch.rule.definition, now);
  if (putOffTo !== null) return putOffTo <= upTo ? count : 0;
  return countDue(stretch, Math.min(to, upTo))?.count ?? 0;
}

function countDue({ rule, from }: Stretch, upTo: Instant): FireCount | null {
  try {
    return compileRule(rule).countBetween(from - 1, upTo);
  } catch (error) {
    if (error instanceof ScheduleError) return null;
    throw error;
  }
}
