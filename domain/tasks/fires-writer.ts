import { fromIso, toIso, type Instant } from '../clock.ts';
import type { DataOf, FiresEvent } from '../events/catalogue.ts';
import { scheduledRunId } from '../ids.ts';
import { tzVersion } from '../schedule/zone.ts';
import type { SpanSkipReason } from '../vocabulary.ts';
import type { FiresDecision, ScheduledRun, Timetable } from './fires.ts';
import { startOf } from './jitter.ts';
import type { Rhythm } from './rhythm.ts';

/** Fires of a timetable that follow each other: how many, and which are their ends. */
export interface Span {
  readonly count: number;
  readonly first: Instant | null;
  readonly last: Instant | null;
}

/** What the last event of a decision rests on, and the fire that follows it. */
export interface Completion {
  readonly task_revision: number;
  readonly next_fire_at: string | null;
}

/** Collects the events of one decision. */
export class FiresWriter {
  readonly rhythm: Rhythm;
  readonly timetable: Timetable;
  /** Everything up to here is decided, by earlier decisions or by this one. */
  decidedUpTo: Instant;
  private readonly taskId: string;
  /** What the events rest on. */
  private readonly taskRevision: number;
  private readonly events: FiresEvent[] = [];
  private readonly runs: ScheduledRun[] = [];
  private fireCount: number;

  constructor(taskId: string, rhythm: Rhythm, timetable: Timetable, taskRevision: number) {
    this.taskId = taskId;
    this.rhythm = rhythm;
    this.timetable = timetable;
    this.taskRevision = taskRevision;
    this.fireCount = rhythm.fires?.fire_count ?? 0;
    const decided = rhythm.fires?.decided ?? null;
    this.decidedUpTo = decided === null ? Number.NEGATIVE_INFINITY : fromIso(decided);
  }

  get requested(): number {
    return this.runs.length;
  }

  /** No more fires may be requested: `max_runs` is spent. */
  get exhausted(): boolean {
    const { max_runs } = this.rhythm.definition;
    return max_runs !== null && this.fireCount >= max_runs;
  }

  /**
   * A fire that runs.
   * @param then the fire after it, where that is known
   */
  fire(nominal: Instant, runAt: Instant, then?: Instant | null): void {
    this.fireCount += 1;
    this.decidedUpTo = nominal;
    const iso = toIso(nominal);
    const runId = scheduledRunId(this.taskId, iso);
    const data = { nominal: iso, run_id: runId, ...this.state(this.following(nominal, then)) };
    this.events.push({ type: 'Fired', data });
    this.runs.push({ runId, request: this.requestOf(nominal, runAt) });
  }

  /**
   * Fires that do not run; none is nothing.
   * @param then the fire after them, where that is known
   */
  skip(reason: SpanSkipReason, { count, first, last }: Span, then?: Instant): this {
    if (first === null || last === null) return this;
    this.decidedUpTo = last;
    const state = this.state(this.following(last, then));
    const data = { reason, from: toIso(first), to: toIso(last), count, ...state };
    this.events.push({ type: 'FiresSkipped', data });
    return this;
  }

  /** Runs the newest fires of a span, as far as any may run, and records the older ones. */
  runNewest(wanted: number, reason: SpanSkipReason, { count, first, last }: Span): void {
    if (first === null || last === null) return;
    const newest = [last];
    let oldest = last;
    while (newest.length < Math.min(wanted, count)) {
      const before = this.timetable.previous(oldest)?.at;
      if (before === undefined || before < first) break;
      newest.unshift(before);
      oldest = before;
    }
    if (newest.length < count) {
      const before = this.timetable.previous(oldest)?.at ?? first;
      this.skip(reason, { count: count - newest.length, first, last: before }, oldest);
    }
    newest.forEach((nominal, index) => {
      if (!this.exhausted) this.fire(nominal, nominal, newest[index + 1]);
    });
  }

  /** Says what the next fire is, where none was to be decided after all. */
  correct(next_fire_at: string | null): FiresDecision {
    this.events.push({
      type: 'NextFireCorrected',
      data: { tz_version: tzVersion(), ...this.state(this.exhausted ? null : next_fire_at) },
    });
    return this.result();
  }

  /** What was collected. @param completion of what is owed, where its last is decided by this */
  result(completion?: Completion): FiresDecision {
    const { events, runs } = this;
    const last = events.at(-1);
    if (completion === undefined || last === undefined) return { events, runs };
    const { task_revision } = completion;
    const next_fire_at = this.exhausted ? null : completion.next_fire_at;
    const data = { ...last.data, task_revision, next_fire_at };
    return { events: [...events.slice(0, -1), { ...last, data } as FiresEvent], runs };
  }

  private state(next_fire_at: string | null): {
    readonly next_fire_at: string | null;
    readonly task_revision: number;
    readonly fire_count: number;
  } {
    return { next_fire_at, task_revision: this.taskRevision, fire_count: this.fireCount };
  }

  /** The fire after an instant, unless there may be none any more. */
  private following(after: Instant, known?: Instant | null): string | null {
    if (this.exhausted) return null;
    const next = known === undefined ? (this.timetable.next(after)?.at ?? null) : known;
    return next === null ? null : toIso(next);
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
      run_at: toIso(startOf(this.taskId, definition, runAt, this.timetable)),
      event: null,
      retry_of: null,
      prior_steps: [],
      overlap_policy: definition.overlap_policy,
    };
  }
}
