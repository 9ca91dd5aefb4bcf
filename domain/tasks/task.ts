import { fromIso, toIso, type Instant } from '../clock.ts';
import { Refusal } from '../errors.ts';
import type { TaskEvent } from '../events/catalogue.ts';
import type { EventPlace, Fold } from '../handle.ts';
import { LAST_INSTANT } from '../schedule/civil.ts';
import type { TaskDefinition } from './task-definition.ts';
import type { MisfirePolicy, TaskStatus } from '../vocabulary.ts';

/**
 * A task: a pipeline and when it is due.
 *
 *   none ──TaskCreated──► active ◄──TaskPaused / TaskResumed──► paused
 *                           └──────────── TaskCanceled ────────────┴──► canceled (for ever)
 */
export type TaskState = { readonly status: 'none' } | LiveTask;

export interface LiveTask {
  readonly status: TaskStatus;
  readonly definition: TaskDefinition;
  /** What a rule without DTSTART counts from. */
  readonly anchor: string;
  /** The next fire as the last event of this stream says; the fires- stream knows the later ones. */
  readonly next_fire_at: string | null;
  /** When a snoozed fire runs; null when the next one is not snoozed. */
  readonly next_run_at: string | null;
  /** Of the last event that set `next_fire_at`. */
  readonly rhythm_revision: number;
  readonly created_at: string;
  readonly updated_at: string;
  readonly revision: number;
}

export const taskFold: Fold<TaskState, TaskEvent> = {
  initial: { status: 'none' },
  evolve: evolveTask,
};

function evolveTask(state: TaskState, event: TaskEvent, at: EventPlace): TaskState {
  const { occurredAt } = at.metadata;
  if (event.type === 'TaskCreated') {
    return {
      status: 'active',
      ...event.data,
      next_run_at: null,
      rhythm_revision: at.revision,
      created_at: occurredAt,
      updated_at: occurredAt,
      revision: at.revision,
    };
  }
  if (state.status === 'none') return state;
  const changed = { ...state, updated_at: occurredAt, revision: at.revision };
  const setAnew = { ...changed, rhythm_revision: at.revision };
  switch (event.type) {
    case 'TaskUpdated': {
      const { changes, rescheduled, anchor, next_fire_at } = event.data;
      const definition = { ...state.definition, ...changes };
      if (!rescheduled) return { ...changed, definition };
      return { ...setAnew, definition, anchor, next_fire_at, next_run_at: null };
    }
    case 'TaskPaused':
      return { ...changed, status: 'paused' };
    case 'TaskResumed':
      return {
        ...setAnew,
        status: 'active',
        next_fire_at: event.data.next_fire_at,
        next_run_at: event.data.next_fire_at === state.next_fire_at ? state.next_run_at : null,
      };
    case 'TaskSnoozed': {
      const { next_fire_at, next_run_at } = event.data;
      return { ...setAnew, next_fire_at, next_run_at };
    }
    case 'TaskCanceled':
      return { ...setAnew, status: 'canceled', next_fire_at: null, next_run_at: null };
    case 'Abandoned':
      return state;
  }
}

/** The rhythm of a rule that was just set: its anchor, cut to the second, and its next fire. */
export interface NewRhythm {
  readonly anchor: string;
  readonly next_fire_at: string | null;
}

/** The moment that a rule counts from when it is set now. */
export function anchorAt(now: Instant): string {
  return toIso(Math.floor(now / 1000) * 1000);
}

export function createTask(
  state: TaskState,
  definition: TaskDefinition,
  rhythm: NewRhythm,
): readonly TaskEvent[] {
  if (state.status !== 'none') throw new Refusal('STATE_CONFLICT', 'this task exists');
  return [{ type: 'TaskCreated', data: { definition, ...rhythm } }];
}

/**
 * Changes the fields that are given and differ. Nothing to do when none does.
 * @param rhythm set anew; null leaves it as it is
 */
export function updateTask(
  state: TaskState,
  changes: Partial<TaskDefinition>,
  rhythm: NewRhythm | null,
): readonly TaskEvent[] {
  const task = requireTask(state);
  if (task.status === 'canceled') throw refusedAsCanceled('changed');
  const differing = Object.entries(changes).filter(
    ([field, value]) =>
      JSON.stringify(task.definition[field as keyof TaskDefinition]) !== JSON.stringify(value),
  );
  if (differing.length === 0) return [];
  const { anchor, next_fire_at } = rhythm ?? task;
  return [
    {
      type: 'TaskUpdated',
      data: {
        changes: Object.fromEntries(differing),
        rescheduled: rhythm !== null,
        anchor,
        next_fire_at,
      },
    },
  ];
}

/** Pauses a task; nothing to do when it is paused. */
export function pauseTask(state: TaskState, byFailures = false): readonly TaskEvent[] {
  const task = requireTask(state);
  if (task.status === 'canceled') throw refusedAsCanceled('paused');
  return task.status === 'paused'
    ? []
    : [{ type: 'TaskPaused', data: { by_failures: byFailures } }];
}

/**
 * Resumes a task; nothing to do when it is active.
 * @param nextFireAt the next fire after now, or the one that is put off beyond it and stays so
 */
export function resumeTask(
  state: TaskState,
  missed: MisfirePolicy,
  nextFireAt: string | null,
): readonly TaskEvent[] {
  const task = requireTask(state);
  if (task.status === 'canceled') throw refusedAsCanceled('resumed');
  return task.status === 'active'
    ? []
    : [{ type: 'TaskResumed', data: { missed, next_fire_at: nextFireAt } }];
}

/** Cancels a task, for ever; nothing to do when it is canceled. */
export function cancelTask(state: TaskState): readonly TaskEvent[] {
  const task = requireTask(state);
  return task.status === 'canceled' ? [] : [{ type: 'TaskCanceled', data: {} }];
}

/**
 * Puts the next fire off: it keeps its nominal time and runs later. Repeated snoozes add up.
 * @param nextFireAt the next fire of the rhythm
 */
export function snoozeTask(
  state: TaskState,
  delaySeconds: number,
  nextFireAt: string | null,
): readonly TaskEvent[] {
  const task = requireTask(state);
  if (task.status !== 'active') {
    throw new Refusal('STATE_CONFLICT', `a ${task.status} task can't be snoozed`, {
      status: task.status,
    });
  }
  if (nextFireAt === null) {
    const { schedule_kind } = task.definition;
    const why =
      schedule_kind === 'event'
        ? "a task by event can't be snoozed: it has no times of its own"
        : 'there is no fire ahead that could be snoozed';
    throw new Refusal('STATE_CONFLICT', why, { schedule_kind });
  }
  const snoozed = task.next_fire_at === nextFireAt ? task.next_run_at : null;
  const nextRun = fromIso(snoozed ?? nextFireAt) + delaySeconds * 1000;
  if (nextRun > LAST_INSTANT) {
    const why = 'put off by so much, the next fire would run after the year 9999';
    throw new Refusal('STATE_CONFLICT', why, { next_run_at: snoozed ?? nextFireAt });
  }
  const next_run_at = toIso(nextRun);
  return [
    {
      type: 'TaskSnoozed',
      data: { delay_seconds: delaySeconds, next_fire_at: nextFireAt, next_run_at },
    },
  ];
}

/** @throws Refusal `NOT_FOUND` */
export function requireTask(state: TaskState): LiveTask {
  if (state.status === 'none') throw new Refusal('NOT_FOUND', 'there is no such task');
  return state;
}

const refusedAsCanceled = (what: string): Refusal =>
  new Refusal('STATE_CONFLICT', `a canceled task can't be ${what}`, { status: 'canceled' });
