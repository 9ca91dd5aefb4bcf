import { fromIso, toIso } from '../clock.ts';
import type { FiresEvent, TaskEvent } from '../events/catalogue.ts';
import type { EventPlace } from '../handle.ts';
import type { TaskDefinition } from './task-definition.ts';
import type { MisfirePolicy, TaskStatus } from '../vocabulary.ts';

/**
 * The schedule state of a task: the data for deciding its fires, folded from `task-<id>` and `fires-<id>` together.
 * Events of the two streams may arrive in either order if they do not depend on each other. An event of `fires-` names
 * the task revision on which it rests. So {@link nextFireOf} can tell which stream has the latest next fire.
 */
export interface ScheduleState {
  /** Left out in `default`. */
  readonly namespace?: string;
  readonly status: TaskStatus;
  readonly definition: FiringDefinition;
  readonly anchor: string;
  /** The revision of the last event of `task-`. */
  readonly task_revision: number;
  /** The last event of `task-` that set the next fire. */
  readonly set: {
    readonly revision: number;
    readonly at: string;
    readonly next_fire_at: string | null;
    readonly next_run_at: string | null;
  };
  /** The backlog: spans with undecided fires up to a pause, a resume or a rule change, in the order of their times. */
  readonly owed: readonly BacklogSpan[];
  /** The last event of `fires-`; null before the first. */
  readonly fires: {
    readonly revision: number;
    readonly next_fire_at: string | null;
    readonly task_revision: number;
    readonly fire_count: number;
    /** All fires up to this nominal time are decided, by any rule; null if none is decided yet. */
    readonly decided: string | null;
  } | null;
}

/**
 * Fires from `from` to `to` (inclusive) that are to be decided by an earlier rule. A pause held them back, or they were
 * due and undecided when the task was paused or its rule changed, or they came due while an earlier fire was snoozed.
 */
export interface BacklogSpan {
  readonly reason: 'paused' | 'missed' | 'snoozed';
  /**
   * The first fire of the span. For a span after another one of the same rule, the instant at which the span begins.
   */
  readonly from: string;
  readonly to: string;
  /** For a pause: the policy of the resume; null before that. Missed fires follow the policy of the definition. */
  readonly policy: MisfirePolicy | null;
  /** Revision of the task's event that ended it. An event of `fires-` that rests on it has decided the span. */
  readonly until: number;
  /** The time at which a snoozed fire was to run, if that was before its span ended. */
  readonly run_at?: string;
  readonly definition: FiringDefinition;
  readonly anchor: string;
}

/** The parts of a definition that deciding fires needs. */
export type FiringDefinition = Omit<TaskDefinition, 'payload' | 'title' | 'description' | 'tags'>;

/** The schedule state after an event of either stream; null before the task is created. */
export function evolveScheduleState(
  state: ScheduleState | null,
  event: TaskEvent | FiresEvent,
  at: EventPlace,
): ScheduleState | null {
  const { revision } = at;
  if (event.type === 'TaskCreated') {
    const { definition, anchor, next_fire_at, namespace } = event.data;
    return {
      ...(namespace === undefined ? {} : { namespace }),
      status: 'active',
      definition: firingDefinition(definition),
      anchor,
      task_revision: revision,
      set: { revision, at: at.metadata.occurredAt, next_fire_at, next_run_at: null },
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
      const decided = latest(state.fires?.decided ?? null, decidedUpTo(event));
      const isOpen = ({ until, to }: BacklogSpan): boolean =>
        until > task_revision && (decided === null || to > decided);
      const fires = { revision, next_fire_at, task_revision, fire_count, decided };
      return { ...state, fires, owed: state.owed.filter(isOpen) };
    }
    default:
      return evolveTaskPart(state, event, at);
  }
}

function evolveTaskPart(state: ScheduleState, event: TaskEvent, at: EventPlace): ScheduleState {
  const { revision } = at;
  const { occurredAt } = at.metadata;
  const changed = { ...state, task_revision: revision };
  const reset = (next_fire_at: string | null, next_run_at: string | null): ScheduleState => ({
    ...changed,
    set: { revision, at: occurredAt, next_fire_at, next_run_at },
  });
  switch (event.type) {
    case 'TaskUpdated': {
      const { changes, rescheduled, anchor, next_fire_at } = event.data;
      const definition = firingDefinition({ ...state.definition, ...changes } as TaskDefinition);
      if (!rescheduled) return { ...changed, definition };
      // The resume decides the fires that a pause holds back, including those of the previous rule.
      const reason = state.status === 'active' ? 'missed' : 'paused';
      const backlog = backlogAt(state, revision, reason, occurredAt);
      return { ...reset(next_fire_at, null), definition, anchor, owed: backlog };
    }
    case 'TaskPaused':
      return { ...changed, status: 'paused', owed: backlogBeforePause(state, at) };
    case 'TaskResumed': {
      const { missed, next_fire_at } = event.data;
      const { next_run_at } = state.set;
      const isSnoozed = next_run_at !== null && next_fire_at === state.set.next_fire_at;
      // A fire snoozed beyond the pause was not held back by it.
      const held = isSnoozed ? state.owed : backlogAt(state, revision, 'paused', occurredAt);
      const backlog = held.map((span) =>
        span.reason === 'paused' && span.policy === null ? { ...span, policy: missed } : span,
      );
      const set = reset(next_fire_at, isSnoozed ? next_run_at : null);
      return { ...set, status: 'active', owed: backlog };
    }
    case 'TaskSnoozed':
      return reset(event.data.next_fire_at, event.data.next_run_at);
    case 'TaskCanceled':
      return { ...reset(null, null), status: 'canceled', owed: [] };
    default:
      return changed;
  }
}

/** The backlog when a pause begins. Fires due before it are not held back by it, but decided after the resume. */
function backlogBeforePause(state: ScheduleState, at: EventPlace): readonly BacklogSpan[] {
  const before = toIso(fromIso(at.metadata.occurredAt) - 1);
  const runAt = nextRunOf(state);
  const isDue = state.status === 'active' && runAt !== null && runAt <= before;
  return isDue ? backlogAt(state, at.revision, 'missed', before) : state.owed;
}

/**
 * The backlog when a rule or a pause ends, or a pause starts: the present one, plus fires that have come due since.
 * Fires that came due while an earlier one was snoozed keep that reason.
 */
function backlogAt(
  state: ScheduleState,
  until: number,
  reason: BacklogSpan['reason'],
  to: string,
): readonly BacklogSpan[] {
  const { owed, definition, anchor } = state;
  const next = nextFireOf(state);
  const runAt = nextRunOf(state);
  if (next === null || runAt === null || next > to) return owed;
  const owedUpTo = owed.at(-1)?.to ?? null;
  const from = owedUpTo === null || next > owedUpTo ? next : after(owedUpTo);
  const span = { reason, from, to, policy: null, until, definition, anchor };
  const isSnoozed = from === next && runAt !== next;
  const spans: readonly BacklogSpan[] = isSnoozed
    ? [
        { ...span, to: next, ...(runAt <= to ? { run_at: runAt } : {}) },
        { ...span, reason: 'snoozed', from: after(next), to: runAt < to ? runAt : to },
        { ...span, from: after(runAt) },
      ]
    : [span];
  return [...owed, ...spans.filter((each) => each.from <= each.to)];
}

/** The next millisecond. */
const after = (time: string): string => toIso(fromIso(time) + 1);

/** The nominal time up to which an event of `fires-` decides; null for an event that decides none. */
export function decidedUpTo(event: FiresEvent): string | null {
  if (event.type === 'Fired') return event.data.nominal;
  return event.type === 'FiresSkipped' ? event.data.to : null;
}

const latest = (a: string | null, b: string | null): string | null =>
  a === null || (b !== null && b > a) ? b : a;

/**
 * Nominal time of the next fire, from the stream with the latest information. A snooze that was appended while its fire
 * was being decided does not restore that fire. A rule that was set during a decision may name a fire that is already
 * decided. That fire is due at once, and `decideFires` then finds the next fire of the new rule.
 */
export function nextFireOf({
  set,
  fires,
}: {
  readonly set: Pick<ScheduleState['set'], 'revision' | 'next_fire_at' | 'next_run_at'>;
  readonly fires: Omit<NonNullable<ScheduleState['fires']>, 'revision' | 'fire_count'> | null;
}): string | null {
  if (fires === null) return set.next_fire_at;
  const isOvertaken =
    set.next_run_at !== null &&
    set.next_fire_at !== null &&
    fires.decided !== null &&
    set.next_fire_at <= fires.decided;
  return fires.task_revision >= set.revision || isOvertaken ? fires.next_fire_at : set.next_fire_at;
}

/** When the next fire runs: at its nominal time, or later if it is snoozed. */
export function nextRunOf(schedule: ScheduleState): string | null {
  const next = nextFireOf(schedule);
  const { next_fire_at, next_run_at } = schedule.set;
  return next !== null && next === next_fire_at && next_run_at !== null ? next_run_at : next;
}

function firingDefinition(definition: TaskDefinition): FiringDefinition {
  const {
    payload: _payload,
    title: _title,
    description: _text,
    tags: _tags,
    ...firing
  } = definition;
  return firing;
}
