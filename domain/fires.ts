import { fromIso, toIso, type Instant } from './clock.ts';
import type { DataOf, FiresEvent } from './events/catalogue.ts';
import { nameBasedId, scheduledRunId } from './ids.ts';
import {
  nextFireOf,
  nextRunOf,
  type FiringDefinition,
  type OwedSpan,
  type Rhythm,
} from './rhythm.ts';
import type { Fire } from './schedule/schedule.ts';
import type { SpanSkipReason } from './vocabulary.ts';

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

const nothing: FiresDecision = { events: [], runs: [] };

/**
 * Decides every fire of a task that is due now: which run, and which do not and why. Each event says
 * up to which nominal time all is decided, so that deciding needs only the last one; two who decide at once
 * race for the stream's next revision, and one wins.
 *
 * A fire up to `misfire_grace_seconds` late runs. Of those later, the misfire policy says: `skip` records all,
 * `latest` runs the newest if none within grace runs, `all` runs each (at most 100, the older recorded).
 *
 * @param timetable of {@link ruleInForce}
 * @param now never earlier than what the task's own events say of the time
 */
export function decideFires(
  taskId: string,
  rhythm: Rhythm,
  timetable: Timetable,
  now: Instant,
): FiresDecision {
  if (rhythm.status !== 'active') return nothing;
  const writer = new FiresWriter(taskId, rhythm, timetable);
  if (rhythm.owed !== null) return decideOwed(writer, rhythm.owed, timetable);
  const next = nextFireOf(rhythm);
  const runAt = nextRunOf(rhythm);
  if (next === null || runAt === null || fromIso(runAt) > now) return nothing;
  if (runAt !== next) return decideSnoozed(writer, fromIso(next), fromIso(runAt), now);
  return decideDue(writer, fromIso(next), now);
}

/**
 * What was due while the task was paused, or by the rule before it was changed; the fires after that are not
 * touched by it. The timetable is that of the span.
 */
function decideOwed(writer: FiresWriter, owed: OwedSpan, timetable: Timetable): FiresDecision {
  const from = fromIso(owed.from);
  const to = fromIso(owed.to);
  const following = (): string | null => writer.rhythm.set.next_fire_at;
  const late = timetable.countBetween(from - 1, to);
  if (late.count === 0 || late.last === null) return writer.correct(following());
  if (owed.policy === 'skip') return writer.skip(owed.reason, from, late, following).result();
  const wanted = owed.policy === 'latest' ? 1 : MOST_AT_ONCE;
  return writer.runNewest(wanted, owed.reason, from, late, following).result();
}

/** The fire that was put off runs as itself; what came due in the meantime does not run. */
function decideSnoozed(
  writer: FiresWriter,
  nominal: Instant,
  runAt: Instant,
  now: Instant,
): FiresDecision {
  const { timetable, rhythm } = writer;
  const tooLate = now - runAt > rhythm.definition.misfire_grace_seconds * 1000;
  if (tooLate && rhythm.definition.misfire_policy === 'skip') {
    const span = timetable.countBetween(nominal - 1, nominal);
    writer.skip('missed', nominal, span, () => writer.following(nominal));
  } else {
    writer.fire(nominal, () => writer.following(nominal), runAt);
  }
  const between = timetable.countBetween(nominal, runAt);
  if (between.count > 0 && between.first !== null && !writer.exhausted) {
    writer.skip('snoozed', between.first, between, () => writer.following(runAt));
  }
  return writer.result();
}

function decideDue(writer: FiresWriter, due: Instant, now: Instant): FiresDecision {
  const { timetable, rhythm } = writer;
  const { misfire_grace_seconds, misfire_policy } = rhythm.definition;
  const graceStart = now - misfire_grace_seconds * 1000;
  let cursor = due - 1;
  if (due < graceStart) {
    const late = timetable.countBetween(cursor, graceStart - 1);
    const following = (): string | null => writer.following(graceStart - 1);
    if (late.count > 0 && late.last !== null) {
      const inGrace = timetable.next(graceStart - 1);
      const coversLatest = inGrace !== null && inGrace.at <= now;
      if (misfire_policy === 'skip' || (misfire_policy === 'latest' && coversLatest)) {
        writer.skip('missed', due, late, following);
      } else {
        const wanted = misfire_policy === 'latest' ? 1 : MOST_AT_ONCE;
        writer.runNewest(wanted, 'missed', due, late, following);
      }
    }
    cursor = graceStart - 1;
  }
  while (writer.requested < MOST_AT_ONCE && !writer.exhausted) {
    const fire = cursor === due - 1 ? due : timetable.next(cursor)?.at;
    if (fire === undefined || fire > now) break;
    writer.fire(fire, () => writer.following(fire), fire);
    cursor = fire;
  }
  return writer.result();
}

/** The rule that the next decision goes by: the one before a change as long as something is owed by it. */
export function ruleInForce(rhythm: Rhythm): {
  readonly definition: FiringDefinition;
  readonly anchor: string;
} {
  return rhythm.owed ?? rhythm;
}

/** Collects the events of one decision. */
class FiresWriter {
  readonly rhythm: Rhythm;
  readonly timetable: Timetable;
  private readonly taskId: string;
  private readonly events: FiresEvent[] = [];
  private readonly runs: ScheduledRun[] = [];
  private fireCount: number;

  constructor(taskId: string, rhythm: Rhythm, timetable: Timetable) {
    this.taskId = taskId;
    this.rhythm = rhythm;
    this.timetable = timetable;
    this.fireCount = rhythm.fires?.fire_count ?? 0;
  }

  get requested(): number {
    return this.runs.length;
  }

  /** No more fires may be requested: `max_runs` is spent. */
  get exhausted(): boolean {
    const { max_runs } = this.rhythm.definition;
    return max_runs !== null && this.fireCount >= max_runs;
  }

  /** The first fire after an instant, unless there may be none any more. */
  following(after: Instant): string | null {
    if (this.exhausted) return null;
    const next = this.timetable.next(after);
    return next === null ? null : toIso(next.at);
  }

  fire(nominal: Instant, following: () => string | null, runAt: Instant): this {
    if (this.exhausted) return this;
    this.fireCount += 1;
    const iso = toIso(nominal);
    const runId = scheduledRunId(this.taskId, iso);
    this.events.push({
      type: 'Fired',
      data: {
        nominal: iso,
        run_id: runId,
        next_fire_at: this.exhausted ? null : following(),
        task_revision: this.rhythm.task_revision,
        fire_count: this.fireCount,
      },
    });
    this.runs.push({ runId, request: this.requestOf(nominal, runAt) });
    return this;
  }

  skip(
    reason: SpanSkipReason,
    from: Instant,
    span: { readonly count: number; readonly last: Instant | null },
    following: () => string | null,
  ): this {
    if (span.count === 0) return this;
    this.events.push({
      type: 'FiresSkipped',
      data: {
        reason,
        from: toIso(from),
        to: toIso(span.last ?? from),
        count: span.count,
        next_fire_at: this.exhausted ? null : following(),
        task_revision: this.rhythm.task_revision,
        fire_count: this.fireCount,
      },
    });
    return this;
  }

  /** Runs the newest fires of a span and records the older ones as not run. */
  runNewest(
    wanted: number,
    reason: SpanSkipReason,
    from: Instant,
    span: { readonly count: number; readonly last: Instant | null },
    following: () => string | null,
  ): this {
    if (span.last === null) return this;
    const newest = [span.last];
    while (newest.length < Math.min(wanted, span.count)) {
      const before = this.timetable.previous(newest[0] ?? span.last);
      if (before === null || before.at < from) break;
      newest.unshift(before.at);
    }
    const [first = span.last] = newest;
    const older = span.count - newest.length;
    if (older > 0) {
      const last = this.timetable.previous(first)?.at ?? from;
      this.skip(reason, from, { count: older, last }, () => toIso(first));
    }
    newest.forEach((nominal, index) => {
      const later = newest[index + 1];
      this.fire(nominal, later === undefined ? following : () => toIso(later), nominal);
    });
    return this;
  }

  /** Says what the next fire is, where nothing was owed after all. */
  correct(next_fire_at: string | null): FiresDecision {
    const data = {
      next_fire_at,
      tz_version: '',
      task_revision: this.rhythm.task_revision,
      fire_count: this.fireCount,
    };
    return { events: [{ type: 'NextFireCorrected', data }], runs: [] };
  }

  result(): FiresDecision {
    return { events: this.events, runs: this.runs };
  }

  private requestOf(nominal: Instant, runAt: Instant): DataOf<'RunRequested'> {
    const { definition, task_revision } = this.rhythm;
    return {
      task_id: this.taskId,
      task_revision,
      created_by: definition.created_by,
      trigger: 'schedule',
      scheduled_for: toIso(nominal),
      priority: definition.priority,
      run_at: toIso(runAt + jitterOf(this.taskId, definition.jitter_seconds)),
      event: null,
      retry_of: null,
      prior_steps: [],
      overlap_policy: definition.overlap_policy,
    };
  }
}

/** How much later a task's runs start: the same for all its fires, spread evenly over the tasks. Milliseconds. */
export function jitterOf(taskId: string, jitterSeconds: number): number {
  if (jitterSeconds === 0) return 0;
  const share = Number.parseInt(nameBasedId('jitter', taskId).slice(0, 8), 16) / 0x1_0000_0000;
  return Math.floor(share * jitterSeconds * 1000);
}
