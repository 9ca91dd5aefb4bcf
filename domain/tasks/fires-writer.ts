import { fromIso, toIso, type Instant } from '../clock.ts';
import type { FiresEvent } from '../events/catalogue.ts';
import { scheduledRunId } from '../ids.ts';
import { namespaceOf } from '../namespaces/namespace.ts';
import { runRequestOf, type RunToRequest } from '../runs/run-request.ts';
import type { FireCount } from '../schedule/schedule.ts';
import { tzVersion } from '../schedule/zone.ts';
import type { SpanSkipReason } from '../vocabulary.ts';
import type { Completion } from './backlog.ts';
import { startWithJitter } from './jitter.ts';
import type { ScheduleState } from './schedule-state.ts';
import type { Timetable } from './task-schedule.ts';

/** The most runs that one decision requests. The next decision takes the others. */
export const MAX_RUNS_PER_DECISION = 100;

/** The verdict on a span of fires. */
export type SpanVerdict =
  /** Every fire from `first` to `upTo` runs, the oldest first, as far as one decision may request runs. */
  | { readonly outcome: 'run'; readonly first: Instant; readonly upTo: Instant }
  /** A snoozed fire runs under its nominal time. */
  | { readonly outcome: 'run_late'; readonly nominal: Instant; readonly runAt: Instant }
  /** The fires are recorded as skipped, except the newest ones, which run. */
  | {
      readonly outcome: 'skip';
      readonly reason: SpanSkipReason;
      readonly span: FireCount;
      readonly exceptNewest: number;
    };

/** The events of one append to `fires-<task>`, and the runs to request after it. */
export interface FiresDecision {
  readonly events: readonly FiresEvent[];
  readonly runs: readonly ScheduledRun[];
}

export type ScheduledRun = Pick<RunToRequest, 'runId' | 'request'>;

/** An event before its next fire is known. */
interface Draft {
  readonly type: 'Fired' | 'FiresSkipped';
  readonly data: object;
  readonly first: Instant;
  readonly last: Instant;
  /** The fire after it, if that was already looked up. */
  next?: Instant | null;
  readonly fire_count: number;
  /** Whether this event uses up `max_runs`. */
  readonly exhausted: boolean;
}

/** Turns the verdicts of one decision into events and runs. */
export class FiresWriter {
  readonly timetable: Timetable;
  /** All fires up to here are decided, by earlier decisions or by this one. */
  decidedUpTo: Instant;
  readonly #taskId: string;
  readonly #schedule: ScheduleState;
  readonly #taskRevision: number;
  readonly #drafts: Draft[] = [];
  readonly #runs: ScheduledRun[] = [];
  #fireCount: number;

  /** @param taskRevision the revision of the task on which the events rest */
  constructor(taskId: string, schedule: ScheduleState, timetable: Timetable, taskRevision: number) {
    this.#taskId = taskId;
    this.#schedule = schedule;
    this.timetable = timetable;
    this.#taskRevision = taskRevision;
    this.#fireCount = schedule.fires?.fire_count ?? 0;
    const decided = schedule.fires?.decided ?? null;
    this.decidedUpTo = decided === null ? Number.NEGATIVE_INFINITY : fromIso(decided);
  }

  /** Whether `max_runs` is used up, so that no more fires may be requested. */
  get exhausted(): boolean {
    const { max_runs } = this.#schedule.definition;
    return max_runs !== null && this.#fireCount >= max_runs;
  }

  /** Writes verdicts in the order of their fires. Fires after the last permitted run are left for the next decision. */
  write(verdicts: readonly SpanVerdict[]): this {
    for (const verdict of verdicts) {
      if (verdict.outcome === 'skip' && verdict.reason === 'bounds') {
        this.#skip(verdict.reason, verdict.span);
      } else if (this.exhausted) break;
      else if (verdict.outcome === 'run') this.#runEach(verdict.first, verdict.upTo);
      else if (verdict.outcome === 'run_late') this.#fire(verdict.nominal, verdict.runAt);
      else this.#runNewest(verdict.exceptNewest, verdict.reason, verdict.span);
    }
    return this;
  }

  /** Records only the next fire. */
  correct(next_fire_at: string | null, task_revision = this.#taskRevision): FiresDecision {
    const next = this.exhausted ? null : next_fire_at;
    const fire_count = this.#fireCount;
    const data = { tz_version: tzVersion(), next_fire_at: next, task_revision, fire_count };
    return { events: [{ type: 'NextFireCorrected', data }], runs: [] };
  }

  /** @param completion the fields of the last event if it completes a span of the backlog */
  result(completion?: Completion): FiresDecision {
    const events = this.#drafts.map((draft, index) => {
      const { type, data, fire_count } = draft;
      const after = this.#drafts[index + 1];
      const completes = after === undefined ? completion : undefined;
      const next_fire_at = draft.exhausted
        ? null
        : completes === undefined
          ? this.#nextFire(draft, after)
          : completes.next_fire_at;
      const task_revision = completes?.task_revision ?? this.#taskRevision;
      return { type, data: { ...data, next_fire_at, task_revision, fire_count } } as FiresEvent;
    });
    return { events, runs: this.#runs };
  }

  #nextFire(draft: Draft, after: Draft | undefined): string | null {
    let { next } = draft;
    if (after !== undefined) next = after.first;
    else if (next === undefined) next = this.timetable.next(draft.last)?.at ?? null;
    return next === null ? null : toIso(next);
  }

  #runEach(first: Instant, upTo: Instant): void {
    let fire: Instant | null = first;
    while (fire !== null && fire <= upTo && !this.exhausted) {
      if (this.#runs.length >= MAX_RUNS_PER_DECISION) return;
      const draft = this.#fire(fire, fire);
      fire = draft.next = this.timetable.next(fire)?.at ?? null;
    }
  }

  #runNewest(wanted: number, reason: SpanSkipReason, span: FireCount): void {
    const { count, first, last } = span;
    if (first === null || last === null) return;
    if (wanted === 0) return this.#skip(reason, span);
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
      this.#skip(reason, { count: count - newest.length, first, last: before });
    }
    for (const nominal of newest) if (!this.exhausted) this.#fire(nominal, nominal);
  }

  #fire(nominal: Instant, runAt: Instant): Draft {
    this.#fireCount += 1;
    const scheduled_for = toIso(nominal);
    const runId = scheduledRunId(this.#taskId, scheduled_for);
    const data = { nominal: scheduled_for, run_id: runId };
    const draft = this.#draft('Fired', data, nominal, nominal);
    const { definition, task_revision: revision } = this.#schedule;
    const run_at = toIso(startWithJitter(this.#taskId, definition, runAt, this.timetable));
    const namespace = namespaceOf(this.#schedule);
    const task = { id: this.#taskId, revision, definition, namespace };
    const request = runRequestOf(task, { trigger: 'schedule', scheduled_for, run_at });
    this.#runs.push({ runId, request });
    return draft;
  }

  #skip(reason: SpanSkipReason, { count, first, last }: FireCount): void {
    if (first === null || last === null) return;
    const data = { reason, from: toIso(first), to: toIso(last), count };
    this.#draft('FiresSkipped', data, first, last);
  }

  #draft(type: Draft['type'], data: object, first: Instant, last: Instant): Draft {
    this.decidedUpTo = last;
    const { exhausted } = this;
    const draft: Draft = { type, data, first, last, fire_count: this.#fireCount, exhausted };
    this.#drafts.push(draft);
    return draft;
  }
}
