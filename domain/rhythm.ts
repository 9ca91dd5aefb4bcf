import type { FiresEvent, TaskEvent } from './events/catalogue.ts';
import type { EventPlace } from './handle.ts';
import type { TaskDefinition } from './task-definition.ts';
import type { MisfirePolicy, TaskStatus } from './vocabulary.ts';

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
  /** Fires up to a resume (or between two rules) that are still to be recorded. */
  readonly owed: OwedSpan | null;
  /** The last event of `fires-`; null before the first. */
  readonly fires: {
    readonly revision: number;
    readonly next_fire_at: string | null;
    readonly task_revision: number;
    readonly fire_count: number;
  } | null;
}

/**
 * Fires from `from` up to and including `to` that are still to be decided by the rule as it was: what a pause
 * held back, or what was due and undecided when the rule was changed.
 */
export interface OwedSpan {
  readonly reason: 'paused' | 'missed';
  readonly from: string;
  readonly to: string;
  readonly policy: MisfirePolicy;
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
      owed: null,
      fires: null,
    };
  }
  if (state === null) return null;
  switch (event.type) {
    case 'Fired':
    case 'FiresSkipped':
    case 'NextFireCorrected': {
      const { next_fire_at, task_revision, fire_count } = event.data;
      const fires = { revision: at.revision, next_fire_at, task_revision, fire_count };
      const owed = task_revision >= state.set.revision ? null : state.owed;
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
      const owed = state.status === 'active' ? owedAt(state, at, 'missed', 'latest') : state.owed;
      return { ...setAnew(next_fire_at, null), definition, anchor, owed };
    }
    case 'TaskPaused':
      return { ...changed, status: 'paused' };
    case 'TaskResumed': {
      const owed = owedAt(state, at, 'paused', event.data.missed);
      return { ...setAnew(event.data.next_fire_at, null), status: 'active', owed };
    }
    case 'TaskSnoozed':
      return setAnew(event.data.next_fire_at, event.data.next_run_at);
    case 'TaskCanceled':
      return { ...setAnew(null, null), status: 'canceled', owed: null };
    default:
      return changed;
  }
}

function owedAt(
  state: Rhythm,
  at: EventPlace,
  reason: OwedSpan['reason'],
  policy: MisfirePolicy,
): OwedSpan | null {
  // What an earlier change left is decided together with what came due since.
  const from = state.owed?.from ?? nextFireOf(state);
  const to = at.metadata.occurredAt;
  if (from === null || from > to) return null;
  const { definition, anchor } = state.owed ?? state;
  return { reason, from, to, policy, definition, anchor };
}

/** Nominal time of the next fire: what the stream says that spoke last. */
export function nextFireOf(rhythm: Rhythm): string | null {
  const { fires, set } = rhythm;
  return fires !== null && fires.task_revision >= set.revision
    ? fires.next_fire_at
    : set.next_fire_at;
}

/** When the next fire runs: its nominal time, or later when it is snoozed. */
export function nextRunOf(rhythm: Rhythm): string | null {
  const next = nextFireOf(rhythm);
  const { next_fire_at, next_run_at } = rhythm.set;
  return next !== null && next === next_fire_at && next_run_at !== null ? next_run_at : next;
}

function firingDefinition(definition: TaskDefinition): FiringDefinition {
  const {
    payload: _payload,
    title: _title,
    description: _description,
    tags: _tags,
    ...rest
  } = definition;
  return rest;
}
