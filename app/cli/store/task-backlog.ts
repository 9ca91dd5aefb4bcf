import { fromIso, toIso, type Instant } from '../../../domain/clock.ts';
import { ScheduleError, type FireCount } from '../../../domain/schedule/schedule.ts';
import { MAX_RUNS_PER_DECISION } from '../../../domain/tasks/fires-writer.ts';
import { lateUpTo } from '../../../domain/tasks/grace.ts';
import { nextFireOf, nextRunOf, type ScheduleState } from '../../../domain/tasks/schedule-state.ts';
import type { MisfirePolicy } from '../../../domain/vocabulary.ts';
import { compileRule } from '../../../domain/tasks/task-schedule.ts';

/** A task's own policy, and those that a release can name. */
export const policies = ['own', 'skip', 'latest', 'all'] as const;

/** The nominal times of a task that are due and undecided. */
export interface TaskBacklog {
  readonly task_id: string;
  readonly count: number;
  readonly first: string;
  readonly last: string;
  readonly policy: MisfirePolicy;
  /** Resulting runs, by the policy of the release. */
  readonly runs: Readonly<Record<(typeof policies)[number], number>>;
}

/** Undecided fires of one rule. */
interface Span {
  readonly rule: Pick<ScheduleState, 'definition' | 'anchor'>;
  readonly from: Instant;
  readonly to: Instant;
  /** The policy that a resume has already decided; null for none. */
  readonly decided: MisfirePolicy | null;
  /** When its first, snoozed fire runs; null if it is not snoozed. */
  readonly snoozedTo: Instant | null;
}

/** A span with at least one fire. */
interface DueSpan extends Span {
  readonly count: number;
  readonly first: Instant;
  readonly last: Instant;
}

/**
 * The backlog of an active task, also by its earlier rules. Returns null if nothing is due or its rules cannot be
 * evaluated here.
 */
export function taskBacklog(
  taskId: string,
  schedule: ScheduleState,
  now: Instant,
): TaskBacklog | null {
  if (schedule.status !== 'active') return null;
  const { misfire_policy: policy, max_runs } = schedule.definition;
  const remaining = Math.max(0, (max_runs ?? Infinity) - (schedule.fires?.fire_count ?? 0));
  const spans = spansOf(schedule, now).flatMap(dueIn);
  const [first, last] = [spans[0]?.first, spans.at(-1)?.last];
  if (first === undefined || last === undefined) return null;
  const runs = { own: 0, skip: 0, latest: 0, all: 0 };
  for (const [index, span] of spans.entries()) {
    const made = runsOf(span, spans.slice(index + 1), now);
    for (const each of policies) runs[each] = Math.min(remaining, runs[each] + made[each]);
  }
  const count = spans.reduce((sum, span) => sum + span.count, 0);
  return { task_id: taskId, count, first: toIso(first), last: toIso(last), policy, runs };
}

/** In the order of time: by earlier rules or delayed by a pause, then by the current rule. */
function spansOf(schedule: ScheduleState, now: Instant): readonly Span[] {
  const decided = schedule.fires?.decided ?? null;
  const undecided = decided === null ? Number.NEGATIVE_INFINITY : fromIso(decided) + 1;
  const spans = schedule.owed.map((span): Span => ({
    rule: span,
    from: Math.max(fromIso(span.from), undecided),
    to: fromIso(span.to),
    // Fires that came due behind a snoozed one do not run.
    decided: span.reason === 'snoozed' ? 'skip' : span.policy,
    snoozedTo: span.run_at === undefined ? null : fromIso(span.run_at),
  }));
  const [next, runAt] = [nextFireOf(schedule), nextRunOf(schedule)];
  if (next === null || runAt === null || fromIso(runAt) > now) return spans;
  return [...spans, ...currentSpans(schedule, fromIso(next), fromIso(runAt), now)];
}

/** The spans of the current rule. A snoozed fire has three: itself, the fires behind it, and those after its run. */
function currentSpans(
  rule: Span['rule'],
  next: Instant,
  runAt: Instant,
  now: Instant,
): readonly Span[] {
  const whole = { rule, from: next, to: now, decided: null, snoozedTo: null } as const;
  if (runAt === next) return [whole];
  return [
    { ...whole, to: next, snoozedTo: runAt },
    { ...whole, from: next + 1, to: runAt, decided: 'skip' },
    { ...whole, from: runAt + 1 },
  ];
}

/** A span with its fires, if it has any. */
function dueIn(span: Span): readonly DueSpan[] {
  const due = countDue(span, span.to);
  if (due === null || due.first === null || due.last === null) return [];
  return [{ ...span, count: due.count, first: due.first, last: due.last }];
}

/** The runs of a span. With the policy `latest` only the newest span has one. */
function runsOf(span: DueSpan, later: readonly DueSpan[], now: Instant): TaskBacklog['runs'] {
  const { decided, rule, count } = span;
  const all = Math.min(count, MAX_RUNS_PER_DECISION);
  // A resume has decided these fires, so the release does not.
  if (decided !== null) {
    const isNewest = later.every((each) => each.decided === null || each.decided === 'skip');
    const made = { skip: 0, latest: isNewest ? 1 : 0, all }[decided];
    return { own: made, skip: made, latest: made, all: made };
  }
  const undecided = later.filter((each) => each.decided === null);
  // Fires within their grace run under every policy.
  const inGrace = count - lateIn(span, now);
  const isNewest = undecided.every(
    (each) =>
      each.rule.definition.misfire_policy === 'skip' &&
      (each.snoozedTo ?? each.first) <= lateUpTo(each.rule.definition, now),
  );
  const latest = inGrace > 0 || !isNewest ? inGrace : 1;
  const own = { skip: inGrace, latest, all }[rule.definition.misfire_policy];
  return { own, skip: 0, latest: undecided.length === 0 ? 1 : 0, all };
}

/** How many fires of a span are past their grace. */
function lateIn(span: DueSpan, now: Instant): number {
  const upTo = lateUpTo(span.rule.definition, now);
  if (span.snoozedTo !== null) return span.snoozedTo <= upTo ? span.count : 0;
  return countDue(span, Math.min(span.to, upTo))?.count ?? 0;
}

function countDue({ rule, from }: Span, upTo: Instant): FireCount | null {
  try {
    return compileRule(rule.definition, rule.anchor).countBetween(from - 1, upTo);
  } catch (error) {
    if (error instanceof ScheduleError) return null;
    throw error;
  }
}
