import { fromIso, toIso, type Instant } from '../../domain/clock.ts';
import { compileRule } from '../../scheduler/fires/due-index.ts';
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

/** Fires of one rule that are due and not decided, and what a resume has said of them already. */
interface Stretch {
  readonly rule: Pick<Rhythm, 'definition' | 'anchor'>;
  readonly from: Instant;
  readonly to: Instant;
  readonly said: MisfirePolicy | null;
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
  for (const stretch of stretchesOf(rhythm, now)) {
    const due = countDue(stretch, stretch.to);
    if (due === null || due.first === null || due.last === null) continue;
    count += due.count;
    ends.push(due.first, due.last);
    const made = runsOf(stretch, due.count, now);
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
    said: span.policy,
  }));
  const next = nextFireOf(rhythm);
  const runAt = nextRunOf(rhythm);
  if (next !== null && runAt !== null && fromIso(runAt) <= now) {
    stretches.push({ rule: rhythm, from: fromIso(next), to: now, said: null });
  }
  return stretches;
}

/** How many runs come of a stretch with so many fires. */
function runsOf(stretch: Stretch, count: number, now: Instant): OwedByTask['runs'] {
  const by = { skip: 0, latest: 1, all: Math.min(count, MOST_AT_ONCE) };
  const { said, rule } = stretch;
  // What a pause held back is decided as its resume has said, whatever a release says.
  if (said !== null) return { own: by[said], skip: by[said], latest: by[said], all: by[said] };
  const { misfire_policy: policy, misfire_grace_seconds: grace } = rule.definition;
  // What is hardly late runs, whatever the policy says.
  const late = countDue(stretch, Math.min(stretch.to, now - grace * 1000 - 1))?.count ?? 0;
  const inTime = count - late;
  return { ...by, own: inTime > 0 && policy !== 'all' ? inTime : by[policy] };
}

function countDue({ rule, from }: Stretch, upTo: Instant): FireCount | null {
  try {
    return compileRule(rule).countBetween(from - 1, upTo);
  } catch (error) {
    if (error instanceof ScheduleError) return null;
    throw error;
  }
}
