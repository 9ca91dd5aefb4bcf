import { fromIso, toIso, type Instant } from '../clock.ts';
import { RefusalError } from '../errors.ts';
import type { TaskEvent } from '../events/catalogue.ts';
import type { EventPlace, Fold } from '../handle.ts';
import { LAST_INSTANT } from '../schedule/civil.ts';
import { DEFAULT_NAMESPACE, namespaceField, namespaceOf } from '../namespaces/namespace.ts';
import type { TaskDefinition } from './task-definition.ts';
import type { MisfirePolicy, PauseCause, PauseReason, TaskStatus } from '../vocabulary.ts';

/**
 * A task: a pipeline and its schedule.
 *
 *   none ──TaskCreated──► active ◄──TaskPaused / TaskResumed──► paused
 *                           └──────────── TaskCanceled ────────────┴──► canceled (final)
 */
export type TaskState = { readonly status: 'none' } | LiveTask;

/** The agent that changed a task, with the time and the reason. */
export interface Act {
  readonly at: string;
  /** The agent's id, or `service`. */
  readonly by: string;
  /** The reason in the actor's words; null for none. */
  readonly reason: string | null;
}

/** A snooze, and when the snoozed fire runs. */
export interface Snooze extends Act {
  readonly until: string;
}

/** Taken from the metadata of the event that records it. */
export function actOf({ occurredAt: at, actor: by, reason }: EventPlace['metadata']): Act {
  return { at, by, reason: reason ?? null };
}

export interface LiveTask {
  readonly namespace: string;
  readonly status: TaskStatus;
  /** Null unless the task is paused. */
  readonly pause_reason: PauseReason | null;
  /** Null unless the task is paused. */
  readonly paused: Act | null;
  /** The last snooze, until an event of this stream ends it. Its fire may have run already. */
  readonly snoozed: Snooze | null;
  readonly definition: TaskDefinition;
  /** When the rule was set. Without DTSTART, the rule counts from this time. */
  readonly anchor: string;
  /** The next fire by the last event of this stream; `fires-<id>` has later fires. */
  readonly next_fire_at: string | null;
  /** When the next fire runs if it is snoozed; null otherwise. */
  readonly next_run_at: string | null;
  /** The revision of the last event that set `next_fire_at`. */
  readonly schedule_revision: number;
  readonly created_at: string;
  readonly updated_at: string;
  readonly revision: number;
}

export const taskFold: Fold<TaskState, TaskEvent> = {
  initial: { status: 'none' },
  evolve: evolveTask,
  namespaceOf: (state) => (state.status === 'none' ? undefined : state.namespace),
};

function evolveTask(state: TaskState, event: TaskEvent, at: EventPlace): TaskState {
  const { occurredAt } = at.metadata;
  if (event.type === 'TaskCreated') {
    return {
      status: 'active',
      pause_reason: null,
      paused: null,
      snoozed: null,
      ...event.data,
      namespace: namespaceOf(event.data),
      next_run_at: null,
      schedule_revision: at.revision,
      created_at: occurredAt,
      updated_at: occurredAt,
      revision: at.revision,
    };
  }
  if (state.status === 'none') return state;
  const changed = { ...state, updated_at: occurredAt, revision: at.revision };
  const rescheduled = { ...changed, schedule_revision: at.revision };
  switch (event.type) {
    case 'TaskUpdated': {
      const { changes, anchor, next_fire_at } = event.data;
      const definition = { ...state.definition, ...changes };
      if (!event.data.rescheduled) return { ...changed, definition };
      const snoozed = null;
      return { ...rescheduled, definition, anchor, next_fire_at, next_run_at: null, snoozed };
    }
    case 'TaskPaused':
      return {
        ...changed,
        status: 'paused',
        pause_reason: pauseReasonOf(event.data),
        paused: actOf(at.metadata),
      };
    case 'TaskResumed': {
      const isKept = event.data.next_fire_at === state.next_fire_at;
      return {
        ...rescheduled,
        status: 'active',
        pause_reason: null,
        paused: null,
        snoozed: isKept ? state.snoozed : null,
        next_fire_at: event.data.next_fire_at,
        next_run_at: isKept ? state.next_run_at : null,
      };
    }
    case 'TaskSnoozed': {
      const { next_fire_at, next_run_at } = event.data;
      const snoozed = { ...actOf(at.metadata), until: next_run_at };
      return { ...rescheduled, next_fire_at, next_run_at, snoozed };
    }
    case 'TaskCanceled':
      return {
        ...rescheduled,
        status: 'canceled',
        pause_reason: null,
        paused: null,
        snoozed: null,
        next_fire_at: null,
        next_run_at: null,
      };
    case 'Abandoned':
      return state;
  }
}

/** Why a task was paused. */
export function pauseReasonOf(paused: {
  readonly by_failures: boolean;
  readonly cause?: PauseCause;
}): PauseReason {
  return paused.cause ?? (paused.by_failures ? 'failures' : 'request');
}

/** The result of setting a rule: its anchor, cut to the second, and its next fire. */
export interface NewSchedule {
  readonly anchor: string;
  readonly next_fire_at: string | null;
}

/** The instant that a rule counts from when it is set now. */
export function anchorAt(now: Instant): string {
  return toIso(Math.floor(now / 1000) * 1000);
}

export function createTask(
  state: TaskState,
  definition: TaskDefinition,
  schedule: NewSchedule,
  namespace = DEFAULT_NAMESPACE,
): readonly TaskEvent[] {
  if (state.status !== 'none') throw new RefusalError('STATE_CONFLICT', 'the task already exists');
  return [{ type: 'TaskCreated', data: { definition, ...schedule, ...namespaceField(namespace) } }];
}

/** Changes the given fields that differ. No event if none differs. @param schedule null: the schedule stays */
export function updateTask(
  state: TaskState,
  changes: Partial<TaskDefinition>,
  schedule: NewSchedule | null,
): readonly TaskEvent[] {
  const task = requireTask(state);
  if (task.status === 'canceled') throw canceledTask('changed');
  const differing = Object.entries(changes).filter(
    ([field, value]) =>
      JSON.stringify(task.definition[field as keyof TaskDefinition]) !== JSON.stringify(value),
  );
  if (differing.length === 0) return [];
  const { anchor, next_fire_at } = schedule ?? task;
  const changed = Object.fromEntries(differing);
  const data = { changes: changed, rescheduled: schedule !== null, anchor, next_fire_at };
  return [{ type: 'TaskUpdated', data }];
}

/** Pauses a task. No event if it is already paused. */
export function pauseTask(state: TaskState, byFailures = false): readonly TaskEvent[] {
  const task = requireTask(state);
  if (task.status === 'canceled') throw canceledTask('paused');
  if (task.status === 'paused') return [];
  return [{ type: 'TaskPaused', data: { by_failures: byFailures } }];
}

/** Pauses a task whose agent may no longer have it. No event unless it is active. */
export function pauseForCause(state: TaskState, cause: PauseCause): readonly TaskEvent[] {
  if (requireTask(state).status !== 'active') return [];
  return [{ type: 'TaskPaused', data: { by_failures: false, cause } }];
}

/**
 * Resumes a task. No event if it is active.
 * @param nextFireAt the next fire after now, or a fire that is snoozed beyond now
 */
export function resumeTask(
  state: TaskState,
  missed: MisfirePolicy,
  nextFireAt: string | null,
): readonly TaskEvent[] {
  const task = requireTask(state);
  if (task.status === 'canceled') throw canceledTask('resumed');
  if (task.status === 'active') return [];
  return [{ type: 'TaskResumed', data: { missed, next_fire_at: nextFireAt } }];
}

/** Cancels a task permanently. No event if it is already canceled. */
export function cancelTask(state: TaskState): readonly TaskEvent[] {
  const task = requireTask(state);
  return task.status === 'canceled' ? [] : [{ type: 'TaskCanceled', data: {} }];
}

/** Snoozes the next fire: it keeps its nominal time and runs later. Repeated snoozes add up. */
export function snoozeTask(
  state: TaskState,
  delaySeconds: number,
  nextFireAt: string | null,
): readonly TaskEvent[] {
  const task = requireTask(state);
  if (task.status !== 'active') {
    throw new RefusalError('STATE_CONFLICT', `a ${task.status} task can't be snoozed`, {
      status: task.status,
    });
  }
  if (nextFireAt === null) {
    const { schedule_kind } = task.definition;
    const message =
      schedule_kind === 'event'
        ? "an event task can't be snoozed: it does not fire by time"
        : 'the task has no future fire to snooze';
    throw new RefusalError('STATE_CONFLICT', message, { schedule_kind });
  }
  const snoozed = task.next_fire_at === nextFireAt ? task.next_run_at : null;
  const nextRun = fromIso(snoozed ?? nextFireAt) + delaySeconds * 1000;
  if (nextRun > LAST_INSTANT) {
    const message = 'delay_seconds is too long: the next fire would run after the year 9999';
    throw new RefusalError('STATE_CONFLICT', message, { next_run_at: snoozed ?? nextFireAt });
  }
  const data = {
    delay_seconds: delaySeconds,
    next_fire_at: nextFireAt,
    next_run_at: toIso(nextRun),
  };
  return [{ type: 'TaskSnoozed', data }];
}

/** @throws RefusalError `NOT_FOUND` */
export function requireTask(state: TaskState): LiveTask {
  if (state.status === 'none') throw new RefusalError('NOT_FOUND', 'there is no such task');
  return state;
}

const canceledTask = (action: string): RefusalError =>
  new RefusalError('STATE_CONFLICT', `a canceled task can't be ${action}`, { status: 'canceled' });
