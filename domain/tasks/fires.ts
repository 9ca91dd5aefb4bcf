import { fromIso, toIso, type Instant } from '../clock.ts';
import type { DataOf, FiresEvent } from '../events/catalogue.ts';
import type { MissedOrder } from '../operators/operations.ts';
import { FiresWriter } from './fires-writer.ts';
import { tooLateUpTo } from './grace.ts';
import {
  completionOf,
  laterMissed,
  owedFirst,
  runsLaterHeld,
  type LaterMissed,
} from './owed-spans.ts';
import { nextFireOf, nextRunOf, type FiringDefinition, type Rhythm } from './rhythm.ts';
import type { Fire } from '../schedule/schedule.ts';
import { HOUR } from '../schedule/civil.ts';

/** Most fires that one decision requests; what is owed beyond is decided by the next one. */
const MOST_AT_ONCE = 100;

/** What deciding asks of a compiled schedule. */
export interface Timetable {
  next(after: Instant): Fire | null;
  previous(before: Instant): Fire | null;
  countBetween(
    after: Instant,
    upTo: Instant,
  ): { readonly count: number; readonly first: Instant | null; readonly last: Instant | null };
}

/** What is appended to `fires-<task>` in one go, and the runs to request after it. */
export interface FiresDecision {
  readonly events: readonly FiresEvent[];
  readonly runs: readonly ScheduledRun[];
}

export interface ScheduledRun {
  readonly runId: string;
  readonly request: DataOf<'RunRequested'>;
}

/** A fire decided so shortly after the rule was set may have been decided by the one before it. Milliseconds. */
const SETTLED = 60_000;

/**
 * How far another tz database, or another way of counting, may have moved a fire. Governments move clocks by three hours
 * at most. A rule whose days changed has another fire a day later, 23 hours where a clock change comes between: that is
 * not the one that ran. Milliseconds.
 */
const MOST_MOVED = 12 * HOUR;

const nothing: FiresDecision = { events: [], runs: [] };

/**
 * Decides every fire of a task that is due now: which run, and which do not and why. Each event says
 * up to which nominal time all is decided, so that deciding needs only the last one; two who decide at once
 * race for the stream's next revision, and one wins.
 *
 * A fire up to `misfire_grace_seconds` late runs, and one less than a second late in any case. Of those later, the misfire
 * policy says: `skip` records all, `latest` runs the newest if none within grace runs, `all` runs each (at most 100, the
 * older recorded). The newest is that of all rules that the task had meanwhile: what is owed by an earlier one is recorded.
 *
 * @param timetable of {@link ruleInForce}
 * @param now never earlier than what the task's own events say of the time
 * @param missed stands for the task's misfire policy for the fires of a hold that was released
 */
export function decideFires(
  taskId: string,
  rhythm: Rhythm,
  timetable: Timetable,
  now: Instant,
  missed: MissedOrder | null = null,
): FiresDecision {
  if (rhythm.status !== 'active') return nothing;
  if (rhythm.owed.length > 0) return decideOwed(taskId, rhythm, timetable, now, missed);
  const next = nextFireOf(rhythm);
  const runAt = nextRunOf(rhythm);
  if (next === null || runAt === null || fromIso(runAt) > now) return nothing;
  const writer = new FiresWriter(taskId, rhythm, timetable, rhythm.task_revision);
  // What the rule says now counts: another tz database may have moved the fire since it was written.
  const due = dueFire(rhythm, fromIso(next), writer);
  if (due === null || due > now) return writer.correct(due === null ? null : toIso(due));
  if (writer.exhausted) return outOfBounds(writer, due, now);
  const snoozed = runAt !== next && due === fromIso(next);
  if (snoozed) return decideSnoozed(writer, due, fromIso(runAt), now, missed);
  const { definition } = rhythm;
  return decideDue(writer, { definition, due, end: now, newer: [] }, now, missed).result();
}

/** The fire to decide where the one that stands as the next is due. */
function dueFire(
  { set }: Rhythm,
  next: Instant,
  { timetable, decidedUpTo }: FiresWriter,
): Instant | null {
  const due = timetable.next(Math.max(next - 1, decidedUpTo))?.at ?? null;
  // Moved: it may be one that should have run before this.
  const moved = due !== next && next > decidedUpTo;
  return moved ? followingFire(decidedUpTo, fromIso(set.at), timetable) : due;
}

/**
 * Whether the next fire stands where the rule says now, for a task of which nothing is due: another tz database may
 * have moved it since it was written.
 *
 * A fire that was put off keeps its time, what is due is decided by the rule as it is anyway, and a task that has had
 * its `max_runs` is let be: what it must not run is recorded when it comes.
 *
 * @returns the correction, or nothing
 */
export function correctNextFire(
  taskId: string,
  rhythm: Rhythm,
  timetable: Timetable,
  now: Instant,
): FiresDecision {
  if (rhythm.status !== 'active' || rhythm.owed.length > 0) return nothing;
  const next = nextFireOf(rhythm);
  if (next !== nextRunOf(rhythm) || (next !== null && fromIso(next) <= now)) return nothing;
  const writer = new FiresWriter(taskId, rhythm, timetable, rhythm.task_revision);
  if (writer.exhausted) return nothing;
  const following = followingFire(writer.decidedUpTo, fromIso(rhythm.set.at), timetable);
  const expected = following === null ? null : toIso(following);
  return expected === next ? nothing : writer.correct(expected);
}

/**
 * The first fire that is not decided. A decided time that the rule does not hold any more is a fire that was moved
 * after it ran, where a fire of the rule is near: the nearest is that one, and does not run again.
 */
function followingFire(decided: Instant, setAt: Instant, timetable: Timetable): Instant | null {
  const next = timetable.next(Math.max(decided, setAt))?.at ?? null;
  if (next === null || decided - setAt < SETTLED) return next;
  if (timetable.next(decided - 1)?.at === decided) return next;
  const before = timetable.previous(decided)?.at ?? Number.NEGATIVE_INFINITY;
  const ranAlready = next - decided <= MOST_MOVED && next - decided < decided - before;
  return ranAlready ? (timetable.next(next)?.at ?? null) : next;
}

/**
 * What was due before the task was paused, or while it was, or by the rule before it was changed; the fires after that
 * are not touched by it. The timetable is that of the first span. What is left of a span rests on the task as it was
 * before the span's end; the event that completes it rests on the task as it is.
 */
function decideOwed(
  taskId: string,
  rhythm: Rhythm,
  timetable: Timetable,
  now: Instant,
  missed: MissedOrder | null,
): FiresDecision {
  const { owed, later } = owedFirst(rhythm, timetable);
  const writer = new FiresWriter(taskId, rhythm, timetable, owed.until - 1);
  const complete = (): FiresDecision => writer.result(completionOf(rhythm, owed, later, timetable));
  const to = fromIso(owed.to);
  const from = Math.max(fromIso(owed.from), writer.decidedUpTo + 1);
  const span = timetable.countBetween(from - 1, to);
  if (span.first === null) {
    writer.correct(null);
  } else if (writer.exhausted) {
    outOfBounds(writer, span.first, to);
  } else if (owed.reason === 'missed') {
    const newer = laterMissed(rhythm, owed, later, timetable, now);
    const stretch = { definition: owed.definition, due: span.first, end: to, newer };
    if (owed.run_at !== undefined) decidePutOff(writer, stretch, fromIso(owed.run_at), now, missed);
    else decideDue(writer, stretch, now, missed);
    // The rest of very many, or what came due after a hold, is decided next.
    if (!writer.exhausted && writer.decidedUpTo < (span.last ?? to)) return writer.result();
  } else if (owed.policy === 'all') {
    writer.runNewest(MOST_AT_ONCE, owed.reason, span);
  } else if (owed.policy === 'latest' && !runsLaterHeld(owed, later, timetable)) {
    writer.runNewest(1, owed.reason, span);
  } else {
    writer.skip(owed.reason, span);
  }
  return complete();
}

/** The fires that the task may not have any more: `max_runs` is spent, or was made smaller than what had run. */
function outOfBounds(writer: FiresWriter, due: Instant, upTo: Instant): FiresDecision {
  return writer.skip('bounds', writer.timetable.countBetween(due - 1, upTo)).result();
}

/** The fire that was put off runs as itself; what came due in the meantime does not run. */
function decideSnoozed(
  writer: FiresWriter,
  nominal: Instant,
  runAt: Instant,
  now: Instant,
  missed: MissedOrder | null,
): FiresDecision {
  const { timetable, rhythm } = writer;
  const { definition } = rhythm;
  const between = timetable.countBetween(nominal, runAt);
  const then = timetable.next(runAt)?.at ?? null;
  const newer = then !== null && then <= now ? [{ definition, late: then }] : [];
  decidePutOff(writer, { definition, due: nominal, end: now, newer }, runAt, now, missed);
  if (!writer.exhausted) writer.skip('snoozed', between);
  return writer.result();
}

/** Decides the one fire of a stretch, that was put off: it is late from when it was to run. */
function decidePutOff(
  writer: FiresWriter,
  { definition, due, newer }: Stretch,
  runAt: Instant,
  now: Instant,
  missed: MissedOrder | null,
): void {
  const misfire = misfireOf(definition, runAt, now, missed);
  const { policy, upTo } = misfire;
  const newerRuns = policy === 'latest' && runsNewer(newer, misfire, now, missed);
  if (runAt <= upTo && (policy === 'skip' || newerRuns)) {
    writer.skip('missed', { count: 1, first: due, last: due });
  } else {
    writer.fire(due, runAt);
  }
}

/** Decides what is due of a stretch, a fire of the timetable and what follows it: as much as one decision may. */
function decideDue(
  writer: FiresWriter,
  { definition, due, end, newer }: Stretch,
  now: Instant,
  missed: MissedOrder | null = null,
): FiresWriter {
  const { timetable } = writer;
  const misfire = misfireOf(definition, due, now, missed);
  const { policy } = misfire;
  const lateUpTo = Math.min(misfire.upTo, end);
  // What came after a hold is decided by itself, as the task says.
  const upTo = misfire === missed ? lateUpTo : end;
  let fire: Instant | null = due;
  if (due <= lateUpTo) {
    const late = timetable.countBetween(due - 1, lateUpTo);
    fire = timetable.next(lateUpTo)?.at ?? null;
    const newerRuns =
      policy === 'latest' &&
      ((fire !== null && fire <= upTo) || runsNewer(newer, misfire, now, missed));
    if (policy === 'skip' || newerRuns) writer.skip('missed', late);
    else writer.runNewest(policy === 'latest' ? 1 : MOST_AT_ONCE, 'missed', late);
  }
  while (fire !== null && fire <= upTo && writer.requested < MOST_AT_ONCE && !writer.exhausted) {
    const then: Instant | null = timetable.next(fire)?.at ?? null;
    writer.fire(fire, fire, then);
    fire = then;
  }
  return writer;
}

/** Fires that are due by one rule, from the first up to an end, and what is due behind that. */
interface Stretch {
  readonly definition: FiringDefinition;
  readonly due: Instant;
  readonly end: Instant;
  readonly newer: readonly LaterMissed[];
}

/**
 * Whether of what is missed behind a stretch a fire runs: as the release of a hold says of all, or as the task said
 * when each was due.
 * @param misfire what becomes of the late ones of the stretch
 */
function runsNewer(
  newer: readonly LaterMissed[],
  misfire: MissedOrder,
  now: Instant,
  missed: MissedOrder | null,
): boolean {
  return newer.some(({ definition, late }) => {
    const later = misfireOf(definition, late, now, missed);
    // What came due after a hold is decided by itself.
    if (misfire === missed) return later === missed;
    // Of late ones that are not to run, whether others of their rule are in time is not known here.
    return later.policy !== 'skip' || late > later.upTo;
  });
}

/** What becomes of fires that are too late, and up to which time they are: later ones run. */
function misfireOf(
  definition: FiringDefinition,
  due: Instant,
  now: Instant,
  missed: MissedOrder | null,
): MissedOrder {
  // Whoever released a hold has said what becomes of all that it kept back, however late that is.
  if (missed !== null && due <= missed.upTo) return missed;
  return { policy: definition.misfire_policy, upTo: tooLateUpTo(definition, now) };
}

/** The rule that the next decision goes by: the one before a change as long as something is owed by it. */
export function ruleInForce(rhythm: Rhythm): {
  readonly definition: FiringDefinition;
  readonly anchor: string;
} {
  return rhythm.owed[0] ?? rhythm;
}
