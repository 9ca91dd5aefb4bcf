import { fromIso, toIso } from '../clock.ts';
import type { FiresEvent, TaskEvent } from '../events/catalogue.ts';
import type { EventPlace } from '../handle.ts';
import type { TaskDefinition } from './task-definition.ts';
import type { MisfirePolicy, TaskStatus } from '../vocabulary.ts';

/**
 * All that deciding a task's fires needs, folded from `task-<id>` and `fires-<id>` together. The two
 * streams' events may come in either order as far as they don't depend on each other: what belongs to
 * `task-` is taken from there, what belongs to `fires-` from there, and {@link nextFireOf} says which of the
 * two speaks last: an event of `fires-` names the task revision that it rests on.
 */
export interface Rhythm {
  readonly status: TaskStatus;
  /** The definition without what deciding does not need: payload, title, description, tags. */
  readonly definition: FiringDefinition;
  readonly anchor: string;
  /** Of the last event of `task-`. */
  readonly task_revision: number;
  /** Of the last event that set the rhythm anew, and what it said. */
  readonly set: {
    readonly revision: number;
    readonly at: string;
    readonly next_fire_at: string | null;
    readonly next_run_at: string | null;
  };
  /** Fires up to a pause, a resume or a new rule that are still to be decided, in the order of their times. */
  readonly owed: readonly OwedSpan[];
  /** What `fires-` says last; null before its first event. */
  readonly fires: {
    readonly revision: number;
    readonly next_fire_at: string | null;
    readonly task_revision: number;
    readonly fire_count: number;
    /** Everything up to this nominal time is decided, whatever the rule was; null for nothing yet. */
    readonly decided: string | null;
  } | null;
}

/**
 * Fires from `from` up to and including `to` that are still to be decided by the rule as it was: what a pause
 * held back, what was due and undecided when the task was paused or its rule was changed, or what came due behind a
 * fire that was put off.
 */
export interface OwedSpan {
  readonly reason: 'paused' | 'missed' | 'snoozed';
  /** Its first fire, or, behind another span of the same rule, the moment at which it begins. */
  readonly from: string;
  readonly to: string;
  /** Of a pause: what the resume said; null before it. What was missed goes by the definition's own policy. */
  readonly policy: MisfirePolicy | null;
  /** Revision of the task's event that ended it. An event of `fires-` that rests on it has decided the span. */
  readonly until: number;
  /** Of a fire that was put off, and was to run then, before its span ended. Left out of all others. */
  readonly run_at?: string;
  readonly definition: FiringDefinition;
  readonly anchor: string;
}

export type FiringDefinition = Omit<TaskDefinition, 'payload' | 'title' | 'description' | 'tags'>;

/** The rhythm after an event of either stream; null before the task is created. */
export function evolveRhythm(
  state: Rhythm | null,
  event: TaskEvent | FiresEvent,
  at: EventPlace,
): Rhythm | null {
  if (event.type === 'TaskCreated') {
    const { definition, anchor, next_fire_at } = event.data;
    const set = {
      revision: at.revision,
      at: at.metadata.occurredAt,
      next_fire_at,
      next_run_at: null,
    };
    return {
      status: 'active',
      definition: firingDefinition(definition),
      anchor,
      task_revision: at.revision,
      set,
      owed: [],
      fires: null,
    };
  }
  if (state === null) return null;
  switch (event.type) {
    case 'Fired':
    case 'FiresSkipped':
    case 'NextFireCorrected': {
      const { next_fire_at, task_revision, fire_count } = event.data;
      const decided = later(state.fires?.decided ?? null, decidedBy(event));
      const fires = { revision: at.revision, next_fire_at, task_revision, fire_count, decided };
      const isDecided = ({ until, to }: OwedSpan): boolean =>
        until <= task_revision || (decided !== null && to <= decided);
      // Kept as it is where nothing goes, which is nearly always.
      const done = state.owed.some(isDecided);
      const owed = done ? state.owed.filter((span) => !isDecided(span)) : state.owed;
      return { ...state, fires, owed };
    }
    default:
      return evolveTaskPart(state, event, at);
  }
}

function evolveTaskPart(state: Rhythm, event: TaskEvent, at: EventPlace): Rhythm {
  const changed = { ...state, task_revision: at.revision };
  const setAnew = (next_fire_at: string | null, next_run_at: string | null): Rhythm => ({
    ...changed,
    set: { revision: at.revision, at: at.metadata.occurredAt, next_fire_at, next_run_at },
  });
  switch (event.type) {
    case 'TaskUpdated': {
      const { changes, rescheduled, anchor, next_fire_at } = event.data;
      const definition = firingDefinition({ ...state.definition, ...changes } as TaskDefinition);
      if (!rescheduled) return { ...changed, definition };
      // What a pause holds back is decided by its resume, also what it held back under the rule before.
      const reason = state.status === 'active' ? 'missed' : 'paused';
      const owed = owedAt(state, at, reason, at.metadata.occurredAt);
      return { ...setAnew(next_fire_at, null), definition, anchor, owed };
    }
    case 'TaskPaused':
      return { ...changed, status: 'paused', owed: owedBefore(state, at) };
    case 'TaskResumed': {
      const { missed, next_fire_at } = event.data;
      const { next_run_at } = state.set;
      const isPutOff = next_run_at !== null && next_fire_at === state.set.next_fire_at;
      // What is put off beyond the pause was not held back by it.
      const held = isPutOff ? state.owed : owedAt(state, at, 'paused', at.metadata.occurredAt);
      const owed = held.map((span) =>
        span.reason === 'paused' && span.policy === null ? { ...span, policy: missed } : span,
      );
      return { ...setAnew(next_fire_at, isPutOff ? next_run_at : null), status: 'active', owed };
    }
    case 'TaskSnoozed':
      return setAnew(event.data.next_fire_at, event.data.next_run_at);
    case 'TaskCanceled':
      return { ...setAnew(null, null), status: 'canceled', owed: [] };
    default:
      return changed;
  }
}

/**
 * What is owed when a pause begins: what was so far, and what was due before and not decided. It is not held back
 * by the pause, and decided as if there had been none once the task is active again.
 */
function owedBefore(state: Rhythm, at: EventPlace): readonly OwedSpan[] {
  const before = toIso(fromIso(at.metadata.occurredAt) - 1);
  const runAt = nextRunOf(state);
  const isDue = state.status === 'active' && runAt !== null && runAt <= before;
  return isDue ? owedAt(state, at, 'missed', before) : state.owed;
}

/**
 * What is owed when a rule or a pause ends, or a pause begins: what was so far, and what came due since. Of a fire that
 * was put off, what came due behind it up to then has no other reason than that.
 */
function owedAt(
  state: Rhythm,
  at: EventPlace,
  reason: OwedSpan['reason'],
  to: string,
): readonly OwedSpan[] {
  const { owed, definition, anchor } = state;
  const next = nextFireOf(state);
  const runAt = nextRunOf(state);
  if (next === null || runAt === null) return owed;
  const owedUpTo = owed.at(-1)?.to ?? null;
  const from = owedUpTo === null || next > owedUpTo ? next : after(owedUpTo);
  const span = { reason, from, to, policy: null, until: at.revision, definition, anchor };
  const isPutOff = from === next && runAt !== next;
  const spans: readonly OwedSpan[] = isPutOff
    ? [
        { ...span, to: next, ...(runAt <= to ? { run_at: runAt } : {}) },
        { ...span, reason: 'snoozed', from: after(next), to: runAt < to ? runAt : to },
        { ...span, from: after(runAt) },
      ]
    : [span];
  return next > to ? owed : [...owed, ...spans.filter((each) => each.from <= each.to)];
}

/** The next millisecond. */
const after = (time: string): string => toIso(fromIso(time) + 1);

/** Up to which nominal time an event of `fires-` decides; null for one that decides none. */
export function decidedBy(event: FiresEvent): string | null {
  switch (event.type) {
    case 'Fired':
      return event.data.nominal;
    case 'FiresSkipped':
      return event.data.to;
    case 'NextFireCorrected':
      return null;
  }
}

const later = (a: string | null, b: string | null): string | null =>
  a === null || (b !== null && b > a) ? b : a;

/**
 * Nominal time of the next fire: what the stream says that spoke last. A snooze that was decided without knowing
 * of the fire that it puts off (both were under way at once) does not bring that fire back. A rule that was set so
 * names a fire that is decided: due at once, for `decideFires` to say what follows by the new rule.
 */
export function nextFireOf({
  set,
  fires,
}: {
  readonly set: Pick<Rhythm['set'], 'revision' | 'next_fire_at' | 'next_run_at'>;
  readonly fires: Omit<NonNullable<Rhythm['fires']>, 'revision' | 'fire_count'> | null;
}): string | null {
  if (fires === null) return set.next_fire_at;
  const overtaken =
    set.next_run_at !== null &&
    set.next_fire_at !== null &&
    fires.decided !== null &&
    set.next_fire_at <= fires.decided;
  return fires.task_revision >= set.revision || overtaken ? fires.next_fire_at : set.next_fire_at;
}

/** When the next fire runs: its nominal time, or later when it is snoozed. */
export function nextRunOf(rhythm: Rhythm): string | null {
  const next = nextFireOf(rhythm);
  const { next_fire_at, next_run_at } = rhythm.set;
  return next !== null && next === next_fire_at && next_run_at !== null ? next_run_at : next;
}

/** Written out: what is left by taking fields away is an object of the slow and large kind, and each task has one in memory. */
function firingDefinition(definition: TaskDefinition): FiringDefinition {
  return {
    schedule_kind: definition.schedule_kind,
    schedule_expr: definition.schedule_expr,
    timezone: definition.timezone,
    created_by: definition.created_by,
    priority: definition.priority,
    max_retries: definition.max_retries,
    backoff_strategy: definition.backoff_strategy,
    dedupe_key: definition.dedupe_key,
    dedupe_window_seconds: definition.dedupe_window_seconds,
    concurrency_key: definition.concurrency_key,
    concurrency_limit: definition.concurrency_limit,
    overlap_policy: definition.overlap_policy,
    misfire_policy: definition.misfire_policy,
    misfire_grace_seconds: definition.misfire_grace_seconds,
    retry_delay_seconds: definition.retry_delay_seconds,
    retry_max_delay_seconds: definition.retry_max_delay_seconds,
    timeout_seconds: definition.timeout_seconds,
    starts_at: definition.starts_at,
    ends_at: definition.ends_at,
    max_runs: definition.max_runs,
    jitter_seconds: definition.jitter_seconds,
    pause_after_failures: definition.pause_after_failures,
  };
}
