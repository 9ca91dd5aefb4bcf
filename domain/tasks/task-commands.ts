import { fromIso, toIso, type Instant } from '../clock.ts';
import { Refusal, invalid, notFound } from '../errors.ts';
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
import { compileSchedule, ScheduleError, type Schedule } from '../schedule/schedule.ts';
import { decidedBy, evolveRhythm, nextFireOf, type Rhythm } from './rhythm.ts';
import { streams } from '../streams.ts';
import { cancelRun, runFold } from '../runs/run.ts';
import { payloadOfBegun } from '../runs/run-payload.ts';
import { requestRun } from '../runs/run-request.ts';
import {
  anchorAt,
  cancelTask,
  createTask,
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
import type { MisfirePolicy, RunSkipReason } from '../vocabulary.ts';

/** Whether the caller may change this task; throws what it is refused with. */
export type MayChange = (task: LiveTask) => void;

/** What all commands on an existing task take. */
export interface TaskCommand {
  readonly store: EventStore;
  readonly taskId: string;
  readonly context: CommandContext;
  readonly mayChange: MayChange;
  /** What the caller saw (`If-Match`). */
  readonly expectedRevision?: SeenRevision | undefined;
}

/**
 * The schedule of a definition.
 * @throws Refusal `INVALID` naming the field that is at fault
 */
export function scheduleOf(definition: TaskDefinition, anchor: string): Schedule {
  try {
    return compileSchedule({
      kind: definition.schedule_kind,
      expr: definition.schedule_expr,
      timezone: definition.timezone,
      anchor: fromIso(anchor),
      startsAt: definition.starts_at === null ? null : fromIso(definition.starts_at),
      endsAt: definition.ends_at === null ? null : fromIso(definition.ends_at),
    });
  } catch (error) {
    if (error instanceof ScheduleError) throw invalid([{ field: error.field, issue: error.issue }]);
    throw error;
  }
}

/**
 * The next fire of a definition that is set now; null for event tasks.
 * @param anchor see {@link anchorAt}
 * @throws Refusal `INVALID` for an expression at fault, and when there is no fire ahead, which no client can have meant
 */
export function firstFire(definition: TaskDefinition, anchor: string, now: Instant): string | null {
  const schedule = scheduleOf(definition, anchor);
  if (definition.schedule_kind === 'event') return null;
  const next = schedule.next(now);
  if (next === null) {
    const issue = `has no fire ahead${whyNone(definition, anchor, now)}`;
    throw invalid([{ field: 'schedule_expr', issue }]);
  }
  return toIso(next.at);
}

/** What keeps a rule from firing that is not to be seen in the rule itself; empty where nothing does. */
function whyNone(definition: TaskDefinition, anchor: string, now: Instant): string {
  if (definition.ends_at !== null) {
    const unbounded = scheduleOf({ ...definition, ends_at: null }, anchor).next(now);
    if (unbounded !== null) return `: its next, ${toIso(unbounded.at)}, lies after ends_at`;
  }
  if (definition.starts_at !== null) {
    const begun = scheduleOf({ ...definition, starts_at: null }, anchor);
    const last = begun.previous(fromIso(definition.starts_at));
    if (last !== null && last.at > now)
      return `: its last, ${toIso(last.at)}, lies before starts_at`;
  }
  if (definition.schedule_kind === 'once') return ': that moment has passed';
  const last = scheduleOf(definition, anchor).previous(now + 1);
  return last === null ? '' : `: its last was ${toIso(last.at)}`;
}

/**
 * Creates a task.
 * @param options.isNew its id was made for this call, and for no other that may have come before
 * @throws Refusal `INVALID` for an expression at fault or without a fire ahead
 */
export function createTaskCommand(options: {
  readonly store: EventStore;
  readonly taskId: string;
  readonly definition: TaskDefinition;
  readonly context: CommandContext;
  readonly isNew?: boolean;
}): Promise<Handled<TaskState>> {
  const { store, taskId, definition, context, isNew = false } = options;
  const anchor = anchorAt(context.now);
  return handle({
    store,
    stream: streams.task(taskId),
    fold: taskFold,
    // Here and not before: a repetition finds the task made, though its one fire may have passed by then.
    decide: (state) =>
      createTask(state, definition, {
        anchor,
        next_fire_at: firstFire(definition, anchor, context.now),
      }),
    context,
    isNew,
  });
}

/** Fields whose change sets the rhythm anew. */
export const rhythmFields: readonly (keyof TaskDefinition)[] = [
  'schedule_kind',
  'schedule_expr',
  'timezone',
  'starts_at',
  'ends_at',
  'max_runs',
];

/** Changes a task; a new expression is anchored now. One whose `max_runs` is spent has no fire ahead, whatever the rule. */
export async function updateTaskCommand(
  command: TaskCommand & { readonly changes: Partial<TaskDefinition> },
): Promise<Handled<TaskState>> {
  const { store, taskId, changes, context } = command;
  const last = await lastDecision(store, taskId);
  return onTask(command, (task) => {
    const definition = { ...task.definition, ...changes };
    const rescheduled = rhythmFields.some(
      (field) => changes[field] !== undefined && changes[field] !== task.definition[field],
    );
    // A canceled task is refused as such, whatever the rule.
    if (!rescheduled || task.status === 'canceled') return updateTask(task, changes, null);
    const expressionSet = definition.schedule_expr !== task.definition.schedule_expr;
    const anchor = expressionSet ? anchorAt(context.now) : task.anchor;
    const first = firstFire(definition, anchor, context.now);
    const next_fire_at = isSpent(definition, last) ? null : first;
    return updateTask(task, changes, { anchor, next_fire_at });
  });
}

/**
 * Pauses a task that fails too often; nothing to do when it is paused or canceled by now, or was changed since its
 * failures were looked at: they may be mended.
 * @param command.seen revision at which the task stood before its runs were looked at
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

export function pauseTaskCommand(command: TaskCommand): Promise<Handled<TaskState>> {
  return onTask(command, (task) => pauseTask(task));
}

/** Resumes a task. @param command.missed what becomes of the fires that the pause held back */
export async function resumeTaskCommand(
  command: TaskCommand & { readonly missed: MisfirePolicy },
): Promise<Handled<TaskState>> {
  const { store, taskId, context, missed } = command;
  const last = await lastDecision(store, taskId);
  return onTask(command, (task) => {
    const { definition, anchor, status } = task;
    const firesNoMore = definition.schedule_kind === 'event' || isSpent(definition, last);
    if (firesNoMore || status !== 'paused') return resumeTask(task, missed, null);
    if (isPutOffBeyond(task, last, context.now)) return resumeTask(task, missed, task.next_fire_at);
    const next = scheduleOf(definition, anchor).next(context.now);
    return resumeTask(task, missed, next === null ? null : toIso(next.at));
  });
}

export function cancelTaskCommand(command: TaskCommand): Promise<Handled<TaskState>> {
  return onTask(command, (task) => cancelTask(task));
}

/**
 * Puts the next fire off.
 * @throws Refusal `STATE_CONFLICT` where there is none, or the task is not active
 */
export async function snoozeTaskCommand(
  command: TaskCommand & { readonly delaySeconds: number },
): Promise<Handled<TaskState>> {
  const { store, taskId, delaySeconds } = command;
  const fires = await lastDecision(store, taskId);
  return onTask(command, (task) => snoozeTask(task, delaySeconds, nextFire(task, fires)));
}

/**
 * When an active task's next fire runs, snooze included; null where there is none. Asks both of its streams: for
 * an answer that is to be right before any view is.
 */
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
 * Nominal time from which on the schedule of an active task is still to decide: what a pause held back, or was due by the
 * rule before a change, as long as that is owed; else its next fire. null where it has nothing to decide.
 */
export async function undecidedFrom(store: EventStore, taskId: string): Promise<string | null> {
  const last = await lastDecision(store, taskId);
  const evolve = (before: Rhythm | null, event: TaskEvent, at: EventPlace): Rhythm | null => {
    const rhythm = evolveRhythm(before, event, at);
    // Behind what it rests on, and before all that has made something owed since.
    return at.revision === last?.data.task_revision ? evolveRhythm(rhythm, last, last) : rhythm;
  };
  const { state } = await load(store, streams.task(taskId), { initial: null, evolve });
  if (state?.status !== 'active') return null;
  return state.owed[0]?.from ?? nextFireOf(state);
}

/** What the task's rhythm said last; null before the first fire. */
async function lastDecision(
  store: EventStore,
  taskId: string,
): Promise<(FiresEvent & EventPlace) | null> {
  const [last] = await store.readStream(streams.fires(taskId), {
    direction: 'backwards',
    limit: 1,
  });
  return last === undefined ? null : (last as unknown as FiresEvent & EventPlace);
}

/** Whether the next fire was put off to later than now. @param last what the rhythm said last */
function isPutOffBeyond(task: LiveTask, last: FiresEvent | null, now: Instant): boolean {
  const { next_fire_at, next_run_at } = task;
  return (
    next_run_at !== null && fromIso(next_run_at) > now && nextFire(task, last) === next_fire_at
  );
}

/** Whether no more fires may be requested. @param last what the rhythm said last */
function isSpent({ max_runs }: TaskDefinition, last: FiresEvent | null): boolean {
  return max_runs !== null && last !== null && last.data.fire_count >= max_runs;
}

/** Nominal time of the next fire, of what both streams of the task said last. */
export function nextFire(task: LiveTask, last: FiresEvent | null): string | null {
  return nextFireOf({
    set: {
      revision: task.rhythm_revision,
      next_fire_at: task.next_fire_at,
      next_run_at: task.next_run_at,
    },
    fires: last === null ? null : { ...last.data, decided: decidedBy(last) },
  });
}

/** What became of a command to run a task now. */
export interface ManualRun {
  /** The run to look at: the new one, or the earlier one that stands for it. */
  readonly runId: string;
  /** Of what was appended; null where the same command had done it before. */
  readonly result: AppendResult | null;
  /** The task's dedupe key was in use: `runId` is the earlier run. */
  readonly deduplicated: boolean;
  /** The task's overlap policy lets it not run; `runId` is recorded as skipped because of that other run. */
  readonly overlaps: string | null;
}

/**
 * Requests one run outside of the schedule, as the task's dedupe key and overlap policy allow. The same command
 * requests the same run, and gets the same answer.
 * @param task as it is known: its revision is what the run is pinned to
 * @throws Refusal `STATE_CONFLICT` for a canceled task, and when the request took so long that it was given up
 */
export async function requestManualRun(
  store: EventStore,
  taskId: string,
  task: LiveTask,
  context: CommandContext,
): Promise<ManualRun> {
  if (task.status === 'canceled') {
    throw new Refusal('STATE_CONFLICT', "a canceled task can't run", { status: task.status });
  }
  const runId = manualRunId(taskId, context.commandId);
  const { created_by, priority, overlap_policy } = task.definition;
  const request = {
    task_id: taskId,
    task_revision: task.revision,
    created_by,
    trigger: 'manual' as const,
    scheduled_for: null,
    priority,
    run_at: toIso(context.now),
    event: null,
    retry_of: null,
    prior_steps: [],
    overlap_policy,
  };
  const requested = await requestRun(store, { runId, request, rules: task.definition, context });
  if (requested.kind === 'requested') {
    return { runId, result: requested.result, deduplicated: false, overlaps: null };
  }
  if (requested.kind === 'skipped') {
    const { reason, because_of, result } = requested;
    return skippedRun(runId, reason, because_of, result);
  }
  // The id comes from the command: a run that is there was requested by this very command before.
  const { event } = requested;
  if (event.type === 'Abandoned') {
    throw new Refusal('STATE_CONFLICT', 'the run was not requested in time; ask again');
  }
  if (event.type === 'RunSkipped') {
    return skippedRun(runId, event.data.reason, event.data.because_of, null);
  }
  return { runId, result: null, deduplicated: false, overlaps: null };
}

function skippedRun(
  runId: string,
  reason: RunSkipReason,
  because_of: string | null,
  result: AppendResult | null,
): ManualRun {
  return reason === 'duplicate' && because_of !== null
    ? { runId: because_of, result, deduplicated: true, overlaps: null }
    : { runId, result, deduplicated: false, overlaps: because_of };
}

/**
 * Ends a run that has not begun, or tells a running one to stop.
 * @returns position of the event; null when it had ended as asked, or was asked before
 * @throws Refusal `STATE_CONFLICT` when it has ended otherwise
 */
export async function cancelRunCommand(
  store: EventStore,
  runId: string,
  context: CommandContext,
): Promise<Position | null> {
  const payload = await payloadOfBegun(store, runId);
  const { events, position } = await handle({
    store,
    stream: streams.run(runId),
    fold: runFold,
    decide: (run) => cancelRun(run, payload),
    context,
  });
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
