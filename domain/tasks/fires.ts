import { fromIso, toIso, type Instant } from '../clock.ts';
import type { MissedOrder } from '../operators/operations.ts';
import { HOUR } from '../schedule/civil.ts';
import type { FireCount } from '../schedule/schedule.ts';
import type { MisfirePolicy, SpanSkipReason } from '../vocabulary.ts';
import {
  completionOf,
  headOf,
  laterMissed,
  runsLaterHeld,
  type BacklogHead,
  type LaterMissed,
} from './backlog.ts';
import {
  FiresWriter,
  MAX_RUNS_PER_DECISION,
  type FiresDecision,
  type SpanVerdict,
} from './fires-writer.ts';
import { lateUpTo } from './grace.ts';
import {
  nextFireOf,
  nextRunOf,
  type FiringDefinition,
  type ScheduleState,
} from './schedule-state.ts';
import type { Timetable } from './task-schedule.ts';

export type { FiresDecision, ScheduledRun } from './fires-writer.ts';

/**
 * How many of a span's newest fires run, by the reason for their lateness and by the policy. All others are skipped
 * with that reason. Fires within their grace do not form such a span, because each of them runs.
 */
const NEWEST_TO_RUN: Readonly<Record<SpanSkipReason, Readonly<Record<MisfirePolicy, number>>>> = {
  missed: { skip: 0, latest: 1, all: MAX_RUNS_PER_DECISION },
  paused: { skip: 0, latest: 1, all: MAX_RUNS_PER_DECISION },
  snoozed: { skip: 0, latest: 0, all: 0 },
  bounds: { skip: 0, latest: 0, all: 0 },
};

/** @param newerRuns whether a newer fire, of a later span, runs. Under `latest`, no fire of this span then runs */
function verdictOn(
  span: FireCount,
  reason: SpanSkipReason,
  policy: MisfirePolicy,
  newerRuns = false,
): SpanVerdict {
  const isOvertaken = policy === 'latest' && newerRuns;
  const exceptNewest = isOvertaken ? 0 : NEWEST_TO_RUN[reason][policy];
  return { outcome: 'skip', reason, span, exceptNewest };
}

/** A fire decided this soon after the rule was set may have been decided by the previous rule. Milliseconds. */
const RULE_SETTLES_AFTER = 60_000;

/**
 * How far another tz database, or another way of counting, may have moved a fire. Governments move clocks by at most
 * three hours. A rule whose days changed has another fire a day later, or 23 hours later across a clock change. That
 * fire is not the one that ran. Milliseconds.
 */
const MAX_MOVE = 12 * HOUR;

const NOTHING: FiresDecision = { events: [], runs: [] };

/**
 * Decides every fire of a task that is due now: which fires run, and why the others do not. Each event contains the
 * nominal time up to which all fires are decided, so that the next decision needs only the last event. Two concurrent
 * decisions race for the stream's next revision, and one wins.
 *
 * A fire up to `misfire_grace_seconds` late runs, and so does one less than a second late. For later ones the misfire
 * policy decides: `skip` skips all, `latest` runs the newest unless one within its grace runs, `all` runs the newest
 * 100. The newest fire is determined over all rules that the task has had since.
 *
 * @param timetable of {@link ruleInForce}
 * @param now never earlier than the times of the task's own events
 * @param missed replaces the task's misfire policy for the fires of a hold that was released
 */
export function decideFires(
  taskId: string,
  schedule: ScheduleState,
  timetable: Timetable,
  now: Instant,
  missed: MissedOrder | null = null,
): FiresDecision {
  if (schedule.status !== 'active') return NOTHING;
  if (schedule.owed.length > 0) return decideBacklog(taskId, schedule, timetable, now, missed);
  const next = nextFireOf(schedule);
  const runAt = nextRunOf(schedule);
  if (next === null || runAt === null || fromIso(runAt) > now) return NOTHING;
  const writer = new FiresWriter(taskId, schedule, timetable, schedule.task_revision);
  // The present result of the rule counts, because another tz database may have moved the fire
  // since the event was written.
  const due = dueFire(schedule, fromIso(next), writer);
  if (due === null || due > now) return writer.correct(due === null ? null : toIso(due));
  const { definition } = schedule;
  let verdicts: readonly SpanVerdict[];
  if (writer.exhausted) {
    verdicts = beyondMaxRuns(timetable, due, now);
  } else if (runAt !== next && due === fromIso(next)) {
    verdicts = verdictsOnSnoozed(definition, due, fromIso(runAt), { timetable, now, missed });
  } else {
    verdicts = verdictsOnDue({ definition, due, end: now, later: [] }, { timetable, now, missed });
  }
  return writer.write(verdicts).result();
}

/** The fire to decide now that the recorded next fire is due. */
function dueFire({ set }: ScheduleState, next: Instant, writer: FiresWriter): Instant | null {
  const { timetable, decidedUpTo } = writer;
  const due = timetable.next(Math.max(next - 1, decidedUpTo))?.at ?? null;
  // The fire has moved, perhaps from a time before this one.
  const isMoved = due !== next && next > decidedUpTo;
  return isMoved ? followingFire(decidedUpTo, fromIso(set.at), timetable) : due;
}

/**
 * Corrects the recorded next fire of a task without a due fire, if the rule now gives another one. For example, another
 * tz database may have moved it. Does not change a snoozed fire, which keeps its time, or a task whose `max_runs` is
 * used up.
 */
export function correctNextFire(
  taskId: string,
  schedule: ScheduleState,
  timetable: Timetable,
  now: Instant,
): FiresDecision {
  if (schedule.status !== 'active' || schedule.owed.length > 0) return NOTHING;
  const next = nextFireOf(schedule);
  if (next !== nextRunOf(schedule) || (next !== null && fromIso(next) <= now)) return NOTHING;
  const writer = new FiresWriter(taskId, schedule, timetable, schedule.task_revision);
  if (writer.exhausted) return NOTHING;
  const following = followingFire(writer.decidedUpTo, fromIso(schedule.set.at), timetable);
  const expected = following === null ? null : toIso(following);
  return expected === next ? NOTHING : writer.correct(expected);
}

/**
 * The first undecided fire. If the rule no longer has the time that was decided last, that fire was moved after it ran.
 * If the rule has fires near that time, the nearest one is the moved fire, and does not run again.
 */
function followingFire(decided: Instant, setAt: Instant, timetable: Timetable): Instant | null {
  const next = timetable.next(Math.max(decided, setAt))?.at ?? null;
  if (next === null || decided - setAt < RULE_SETTLES_AFTER) return next;
  if (timetable.next(decided - 1)?.at === decided) return next;
  const before = timetable.previous(decided)?.at ?? Number.NEGATIVE_INFINITY;
  const hasRun = next - decided <= MAX_MOVE && next - decided < decided - before;
  return hasRun ? (timetable.next(next)?.at ?? null) : next;
}

/**
 * Decides the first span of the backlog: fires that were due before or during a pause, or by the rule before a change.
 * Later fires stay undecided. The timetable is that of the first span. Events within a span rest on the task as it was
 * before the span's end; the event that completes it rests on the present task.
 */
function decideBacklog(
  taskId: string,
  schedule: ScheduleState,
  timetable: Timetable,
  now: Instant,
  missed: MissedOrder | null,
): FiresDecision {
  const head = headOf(schedule, timetable);
  const pending = head.span;
  const writer = new FiresWriter(taskId, schedule, timetable, pending.until - 1);
  const completion = completionOf(schedule, head);
  const to = fromIso(pending.to);
  const from = Math.max(fromIso(pending.from), writer.decidedUpTo + 1);
  const span = timetable.countBetween(from - 1, to);
  if (span.first === null) return writer.correct(completion.next_fire_at, completion.task_revision);
  if (writer.exhausted) {
    return writer.write(beyondMaxRuns(timetable, span.first, to)).result(completion);
  }
  if (pending.reason !== 'missed') {
    return writer.write([verdictOnHeld(head, span)]).result(completion);
  }
  const later = laterMissed(schedule, head, now);
  const stretch = { definition: pending.definition, due: span.first, end: to, later };
  const circumstances = { timetable, now, missed };
  writer.write(
    pending.run_at === undefined
      ? verdictsOnDue(stretch, circumstances)
      : [verdictOnSnoozedFire(stretch, fromIso(pending.run_at), circumstances)],
  );
  // The rest of very many fires, or the fires that came due after a hold, are decided next.
  const isPartial = !writer.exhausted && writer.decidedUpTo < (span.last ?? to);
  return writer.result(isPartial ? undefined : completion);
}

/** The verdict on fires that a pause held back, or that came due while an earlier fire was snoozed. */
function verdictOnHeld(head: BacklogHead, span: FireCount): SpanVerdict {
  const { reason, policy } = head.span;
  return verdictOn(span, reason, policy ?? 'skip', policy === 'latest' && runsLaterHeld(head));
}

/** Fires beyond `max_runs`, which is used up, or was lowered below the number of runs so far. */
function beyondMaxRuns(timetable: Timetable, due: Instant, upTo: Instant): readonly SpanVerdict[] {
  return [verdictOn(timetable.countBetween(due - 1, upTo), 'bounds', 'skip')];
}

/** The data on which all verdicts of a decision depend. */
interface Circumstances {
  readonly timetable: Timetable;
  readonly now: Instant;
  readonly missed: MissedOrder | null;
}

/** A stretch: fires that are due by one rule, from the first to an end, and the fires missed after them. */
interface Stretch {
  readonly definition: FiringDefinition;
  readonly due: Instant;
  readonly end: Instant;
  readonly later: readonly LaterMissed[];
}

/** The snoozed fire runs under its nominal time. Fires that came due in the meantime do not run. */
function verdictsOnSnoozed(
  definition: FiringDefinition,
  nominal: Instant,
  runAt: Instant,
  circumstances: Circumstances,
): readonly SpanVerdict[] {
  const { timetable, now } = circumstances;
  const next = timetable.next(runAt)?.at ?? null;
  const later = next !== null && next <= now ? [{ definition, due: next }] : [];
  return [
    verdictOnSnoozedFire({ definition, due: nominal, end: now, later }, runAt, circumstances),
    verdictOn(timetable.countBetween(nominal, runAt), 'snoozed', 'skip'),
  ];
}

/** The verdict on the snoozed fire of a stretch. Its lateness counts from the time at which it was to run. */
function verdictOnSnoozedFire(
  { definition, due, later }: Stretch,
  runAt: Instant,
  circumstances: Circumstances,
): SpanVerdict {
  const misfire = misfireOf(definition, runAt, circumstances);
  const span = { count: 1, first: due, last: due };
  const newerRuns = misfire.policy === 'latest' && runsLater(later, misfire, circumstances);
  const isSkipped = misfire.policy === 'skip' || newerRuns;
  return runAt <= misfire.upTo && isSkipped
    ? verdictOn(span, 'missed', 'skip')
    : { outcome: 'run_late', nominal: due, runAt };
}

/** The verdicts on the due fires of a stretch: first on those beyond their grace, then on those within it. */
function verdictsOnDue(
  { definition, due, end, later }: Stretch,
  circumstances: Circumstances,
): readonly SpanVerdict[] {
  const { timetable } = circumstances;
  const misfire = misfireOf(definition, due, circumstances);
  const lateUpTo = Math.min(misfire.upTo, end);
  // Fires after a hold are decided separately, by the task's own policy.
  const upTo = misfire.isOrdered ? lateUpTo : end;
  if (due > lateUpTo) return [{ outcome: 'run', first: due, upTo }];
  const late = timetable.countBetween(due - 1, lateUpTo);
  const first = timetable.next(lateUpTo)?.at ?? null;
  const hasInTime = first !== null && first <= upTo;
  const newerRuns =
    misfire.policy === 'latest' && (hasInTime || runsLater(later, misfire, circumstances));
  const verdict = verdictOn(late, 'missed', misfire.policy, newerRuns);
  return hasInTime ? [verdict, { outcome: 'run', first, upTo }] : [verdict];
}

/** The policy for late fires, and the nominal time up to which fires are late. */
interface Misfire extends MissedOrder {
  /** The release of a hold set the policy. */
  readonly isOrdered: boolean;
}

function misfireOf(
  definition: FiringDefinition,
  due: Instant,
  { now, missed }: Circumstances,
): Misfire {
  // The policy of a hold's release applies to all fires that the hold kept back, regardless of
  // their lateness.
  if (missed !== null && due <= missed.upTo) return { ...missed, isOrdered: true };
  const upTo = lateUpTo(definition, now);
  return { policy: definition.misfire_policy, upTo, isOrdered: false };
}

/** Whether a fire that was missed after a stretch runs. @param misfire the policy of the stretch */
function runsLater(
  later: readonly LaterMissed[],
  misfire: Misfire,
  circumstances: Circumstances,
): boolean {
  return later.some(({ definition, due }) => {
    const { policy, upTo, isOrdered } = misfireOf(definition, due, circumstances);
    // Fires after a hold are decided separately.
    if (misfire.isOrdered) return isOrdered;
    // It is not known here whether a later fire of a `skip` rule is within its grace.
    return policy !== 'skip' || due > upTo;
  });
}

/** The rule that the next decision follows: while a backlog is left, that of its first span. */
export function ruleInForce(schedule: ScheduleState): {
  readonly definition: FiringDefinition;
  readonly anchor: string;
} {
  return schedule.owed[0] ?? schedule;
}
