import { fromIso, toIso, type Instant } from '../../domain/clock.ts';
import { compileRule } from '../../scheduler/fires/due-index.ts';
import { nextFireOf, nextRunOf, type Rhythm } from '../../domain/tasks/rhythm.ts';
import { ScheduleError } from '../../domain/schedule/schedule.ts';
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

/** What an active task owes at a moment; null where nothing is due, or its rule can't be evaluated here. */
export function owedBy(taskId: string, rhythm: Rhythm, now: Instant): OwedByTask | null {
  const next = nextFireOf(rhythm);
  const runAt = nextRunOf(rhythm);
  if (rhythm.status !== 'active' || next === null || runAt === null) return null;
  if (fromIso(runAt) > now) return null;
  const due = countDue(rhythm, fromIso(next), now);
  if (due === null || due.first === null || due.last === null) return null;
  const { misfire_policy: policy, misfire_grace_seconds: grace } = rhythm.definition;
  const bound = rhythm.definition.max_runs ?? Number.POSITIVE_INFINITY;
  const left = Math.max(0, bound - (rhythm.fires?.fire_count ?? 0));
  const runs = {
    skip: 0,
    latest: Math.min(1, left),
    all: Math.min(due.count, MOST_AT_ONCE, left),
  };
  // What is hardly late runs, whatever the policy says.
  const late = countDue(rhythm, fromIso(next), now - grace * 1000 - 1)?.count ?? 0;
  const inTime = Math.min(due.count - late, left);
  const own = inTime > 0 && policy !== 'all' ? inTime : runs[policy];
  return {
    task_id: taskId,
    count: due.count,
    first: toIso(due.first),
    last: toIso(due.last),
    policy,
    runs: { ...runs, own },
  };
}

function countDue(
  rhythm: Rhythm,
  next: Instant,
  upTo: Instant,
): {
  readonly count: number;
  readonly first: Instant | null;
  readonly last: Instant | null;
} | null {
  try {
    return compileRule(rhythm).countBetween(next - 1, upTo);
  } catch (error) {
    if (error instanceof ScheduleError) return null;
    throw error;
  }
}
