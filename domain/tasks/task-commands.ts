import { fromIso, toIso, type Instant } from '../clock.ts';
import { RefusalError, notFound } from '../errors.ts';
import type { AppendResult, EventStore, Position } from '../event-store.ts';
import type { FiresEvent, TaskEvent } from '../events/catalogue.ts';
import {
  handle,
  load,
  type CommandContext,
  type EventPlace,
  type Handled,
  type SeenRevision,
} from '../handle.ts';
import { manualRunId } from '../ids.ts';
import type { JsonObject } from '../json.ts';
import {
  decidedUpTo,
  evolveScheduleState,
  nextFireOf,
  type ScheduleState,
} from './schedule-state.ts';
import { streams } from '../streams.ts';
import { cancelRunIn } from '../runs/run-cancellation.ts';
import { requestCommandedRun, runRequestOf, type RunCause } from '../runs/run-request.ts';
import {
  anchorAt,
  cancelTask,
  createTask,
  pauseForCause,
  pauseTask,
  requireTask,
  resumeTask,
  snoozeTask,
  taskFold,
  updateTask,
  type LiveTask,
  type TaskState,
} from './task.ts';
import type { TaskDefinition } from './task-definition.ts';
import { firstFire, scheduleOf } from './task-schedule.ts';
import type { MisfirePolicy, PauseCause } from '../vocabulary.ts';

/** Throws a RefusalError if the caller may not change this task. */
export type MayChange = (task: LiveTask) => void;

/** The parameters of every command on an existing task. */
export interface TaskCommand {
  readonly store: EventStore;
  readonly taskId: string;
  readonly context: CommandContext;
  readonly mayChange: MayChange;
  /** The revision that the caller saw (`If-Match`). */
  readonly expectedRevision?: SeenRevision | undefined;
}

/**
 * Creates a task.
 * @param options.isNew whether its id was created for this call, so that no earlier call can have used it
 * @throws RefusalError `INVALID` for an invalid expression, and for one without a future fire
 */
export function createTaskCommand(options: {
  readonly store: EventStore;
  readonly taskId: string;
  readonly definition: TaskDefinition;
  /** The owner's namespace. Default: `default`. */
  readonly namespace?: string | undefined;
  readonly context: CommandContext;
  readonly isNew?: boolean;
}): Promise<Handled<TaskState>> {
  const { store, taskId, definition, namespace, context, isNew = false } = options;
  const anchor = anchorAt(context.now);
  return handle({
    store,
    stream: streams.task(taskId),
    fold: taskFold,
    // Checked in `decide`, which a repetition of the command skips, because the only fire may have
    // passed by then.
    decide: (state) =>
      createTask(
        state,
        definition,
        { anchor, next_fire_at: firstFire(definition, anchor, context.now) },
        namespace,
      ),
    context,
    isNew,
  });
}

/** Fields whose change reschedules a task. */
export const scheduleFields: readonly (keyof TaskDefinition)[] = [
  'schedule_kind',
  'schedule_expr',
  'timezone',
  'starts_at',
  'ends_at',
  'max_runs',
];

/** Changes a task. A new expression is anchored now. A task that has used up `max_runs` has no next fire. */
export async function updateTaskCommand(
  command: TaskCommand & { readonly changes: Partial<TaskDefinition> },
): Promise<Handled<TaskState>> {
  const { store, taskId, changes, context } = command;
  const last = await lastDecision(store, taskId);
  return onTask(command, (task) => {
    const definition = { ...task.definition, ...changes };
    const rescheduled = scheduleFields.some(
      (field) => changes[field] !== undefined && changes[field] !== task.definition[field],
    );
    // A change of a canceled task is always refused with that reason, for any rule.
    if (!rescheduled || task.status === 'canceled') return updateTask(task, changes, null);
    const expressionSet = definition.schedule_expr !== task.definition.schedule_expr;
    const anchor = expressionSet ? anchorAt(context.now) : task.anchor;
    const first = firstFire(definition, anchor, context.now);
    const next_fire_at = isExhausted(definition, last) ? null : first;
    return updateTask(task, changes, { anchor, next_fire_at });
  });
}

/**
 * Pauses a task that fails too often, unless it is no longer active or has changed since, because the change may be the
 * fix.
 * @param command.seen revision of the task before its runs were looked at
 */
export function pauseAfterFailuresCommand(
  command: Pick<TaskCommand, 'store' | 'taskId' | 'context'> & { readonly seen: number },
): Promise<Handled<TaskState>> {
  const { store, taskId, context, seen } = command;
  return handle({
    store,
    stream: streams.task(taskId),
    fold: taskFold,
    decide: (state) =>
      state.status === 'active' && state.revision === seen ? pauseTask(state, true) : [],
    context,
  });
}

/**
 * Pauses a task whose agent may no longer have it, unless it is no longer active or belongs to another agent by now.
 * @param command.owner the agent
 */
export function pauseForCauseCommand(
  command: Pick<TaskCommand, 'store' | 'taskId' | 'context'> & {
    readonly owner: string;
    readonly cause: PauseCause;
  },
): Promise<Handled<TaskState>> {
  const { store, taskId, context, owner, cause } = command;
  return handle({
    store,
    stream: streams.task(taskId),
    fold: taskFold,
    decide: (state) =>
      requireTask(state).definition.created_by === owner ? pauseForCause(state, cause) : [],
    context,
  });
}

export function pauseTaskCommand(command: TaskCommand): Promise<Handled<TaskState>> {
  return onTask(command, (task) => pauseTask(task));
}

/** Resumes a task. @param command.missed the policy for fires that the pause held back */
export async function resumeTaskCommand(
  command: TaskCommand & { readonly missed: MisfirePolicy },
): Promise<Handled<TaskState>> {
  const { store, taskId, context, missed } = command;
  const last = await lastDecision(store, taskId);
  return onTask(command, (task) => {
    const { definition, anchor, status } = task;
    const hasNoNext = definition.schedule_kind === 'event' || isExhausted(definition, last);
    if (hasNoNext || status !== 'paused') return resumeTask(task, missed, null);
    if (isSnoozedBeyond(task, last, context.now))
      return resumeTask(task, missed, task.next_fire_at);
    const next = scheduleOf(definition, anchor).next(context.now);
    return resumeTask(task, missed, next === null ? null : toIso(next.at));
  });
}

export function cancelTaskCommand(command: TaskCommand): Promise<Handled<TaskState>> {
  return onTask(command, (task) => cancelTask(task));
}

/** Snoozes the next fire. @throws RefusalError `STATE_CONFLICT` if there is none, or the task is not active */
export async function snoozeTaskCommand(
  command: TaskCommand & { readonly delaySeconds: number },
): Promise<Handled<TaskState>> {
  const { store, taskId, delaySeconds } = command;
  const fires = await lastDecision(store, taskId);
  return onTask(command, (task) => snoozeTask(task, delaySeconds, nextFire(task, fires)));
}

/** When an active task's next fire runs, snooze included; null if there is none. Reads the streams, not a view. */
export async function nextRunAt(
  store: EventStore,
  taskId: string,
  task: LiveTask,
): Promise<string | null> {
  if (task.status !== 'active' || task.definition.schedule_kind === 'event') return null;
  const next = nextFire(task, await lastDecision(store, taskId));
  return next !== null && next === task.next_fire_at ? (task.next_run_at ?? next) : next;
}

/**
 * The first undecided nominal time of an active task: in its backlog or, without one, its next fire. null if there is
 * none.
 */
export async function firstUndecidedFire(
  store: EventStore,
  taskId: string,
): Promise<string | null> {
  const last = await lastDecision(store, taskId);
  const evolve = (
    before: ScheduleState | null,
    event: TaskEvent,
    at: EventPlace,
  ): ScheduleState | null => {
    const schedule = evolveScheduleState(before, event, at);
    // Folded after the task event on which it rests, and before later ones that extend the backlog.
    return at.revision === last?.data.task_revision
      ? evolveScheduleState(schedule, last, last)
      : schedule;
  };
  const { state } = await load(store, streams.task(taskId), { initial: null, evolve });
  if (state?.status !== 'active') return null;
  return state.owed[0]?.from ?? nextFireOf(state);
}

/** The last event of `fires-<id>`; null before the first. */
async function lastDecision(
  store: EventStore,
  taskId: string,
): Promise<(FiresEvent & EventPlace) | null> {
  const newest = { direction: 'backwards', limit: 1 } as const;
  const [last] = await store.readStream(streams.fires(taskId), newest);
  return last === undefined ? null : (last as unknown as FiresEvent & EventPlace);
}

/** Whether the next fire is snoozed beyond now. */
function isSnoozedBeyond(task: LiveTask, last: FiresEvent | null, now: Instant): boolean {
  const { next_fire_at, next_run_at } = task;
  return (
    next_run_at !== null && fromIso(next_run_at) > now && nextFire(task, last) === next_fire_at
  );
}

/** Whether `max_runs` is used up. */
function isExhausted({ max_runs }: TaskDefinition, last: FiresEvent | null): boolean {
  return max_runs !== null && last !== null && last.data.fire_count >= max_runs;
}

/** Nominal time of the next fire. @param last the last event of `fires-<id>` */
export function nextFire(task: LiveTask, last: FiresEvent | null): string | null {
  const { schedule_revision: revision, next_fire_at, next_run_at } = task;
  return nextFireOf({
    set: { revision, next_fire_at, next_run_at },
    fires: last === null ? null : { ...last.data, decided: decidedUpTo(last) },
  });
}

/** The result of a command to run a task now. */
export interface ManualRun {
  /** The new run, or the earlier one that it duplicates. */
  readonly runId: string;
  /** The position of the appended events; null if the same command had appended them before. */
  readonly result: AppendResult | null;
  /** The task's dedupe key was in use: `runId` is the earlier run. */
  readonly deduplicated: boolean;
  /** The run because of which the overlap policy skips this one: `runId` is recorded as skipped. */
  readonly overlaps: string | null;
}

/**
 * Requests one run outside the schedule, as the task's dedupe key and overlap policy allow. A repetition of the command
 * requests the same run, and gets the same result.
 * @param task the run is pinned to its revision
 * @param given.params replace the task's defaults; already checked by its rules. Default: none
 * @param given.parent the step that waits for its end. Default: none
 * @throws RefusalError `STATE_CONFLICT` for a canceled task, and if the request took so long that it was voided
 */
export async function requestManualRun(
  store: EventStore,
  taskId: string,
  task: LiveTask,
  context: CommandContext,
  given: {
    readonly params?: JsonObject | undefined;
    readonly parent?: RunCause['parent'] | undefined;
  } = {},
): Promise<ManualRun> {
  const { status, definition, revision, namespace } = task;
  const { params, parent } = given;
  if (status === 'canceled') {
    throw new RefusalError('STATE_CONFLICT', "a canceled task can't run", { status });
  }
  const runId = manualRunId(taskId, context.commandId);
  const replaced = params === undefined ? {} : { params };
  const child = parent === undefined ? {} : { parent };
  const at = toIso(context.now);
  const cause = { trigger: 'manual', run_at: at, ...replaced, ...child } as const;
  const request = runRequestOf({ id: taskId, revision, definition, namespace }, cause);
  const run = { runId, request, rules: definition, context };
  const { result, skip } = await requestCommandedRun(store, run);
  const overlaps = skip?.because_of ?? null;
  return skip?.reason === 'duplicate' && overlaps !== null
    ? { runId: overlaps, result, deduplicated: true, overlaps: null }
    : { runId, result, deduplicated: false, overlaps };
}

/**
 * Cancels a run that no worker has, or requests the cancellation of a running one.
 * @returns position of the event; null if the run was canceled, or its cancellation requested, before
 * @throws RefusalError `STATE_CONFLICT` if the run has ended otherwise
 */
export async function cancelRunCommand(
  store: EventStore,
  runId: string,
  context: CommandContext,
): Promise<Position | null> {
  const { events, position } = await cancelRunIn(store, runId, context);
  return events.length > 0 ? position : null;
}

function onTask(
  command: TaskCommand,
  decide: (task: LiveTask) => readonly TaskEvent[],
): Promise<Handled<TaskState>> {
  const { store, taskId, context, mayChange, expectedRevision } = command;
  return handle({
    store,
    stream: streams.task(taskId),
    fold: taskFold,
    admit: (state) => {
      if (state.status === 'none') throw notFound('task', taskId);
      mayChange(state);
    },
    decide: (state) => decide(requireTask(state)),
    context,
    expectedRevision,
  });
}
