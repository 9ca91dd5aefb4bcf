import { ownerDenial } from '../../../domain/agents/permissions.ts';
import type { EventStore, Position } from '../../../domain/event-store.ts';
import { streams } from '../../../domain/streams.ts';
import { requireTask } from '../../../domain/tasks/task.ts';
import {
  pauseTaskCommand,
  requestManualRun,
  resumeTaskCommand,
  snoozeTaskCommand,
  type ManualRun,
} from '../../../domain/tasks/task-commands.ts';
import { runsProjection } from '../../../projections/views/runs.ts';
import {
  RunRequested,
  Snoozed,
  StatusChanged,
  TaskCanceled,
} from '../../schemas/response-schemas-tasks.ts';
import {
  endpoint,
  idIn,
  success,
  type EndpointResponse,
  type Call,
  type Endpoint,
} from '../../endpoint.ts';
import { taskWithId } from '../lookup.ts';
import { showPlannedRun } from '../runs/run-records.ts';
import { runAtEnd } from '../runs/run-waiting.ts';
import { ResumeQuery, RunNow, RunNowQuery, SnoozeTask } from '../../schemas/schemas.ts';
import { requireMoreRuns } from '../../access/waiting-run-limit.ts';
import { paramsFor } from '../../params/params-check.ts';
import { cancelRunsOf, cancelTask } from './task-cancellation.ts';
import { mayChange, ownerOf, requirePermittedOwner } from './task-ownership.ts';

const scopes = ['tasks:write'] as const;

/** How long a cancellation waits for the view to show the task's runs. Milliseconds. */
const MAX_LAG = 2000;

const runNow = endpoint('POST /tasks/:id/run_now', {
  operationId: 'runTask',
  summary: 'Runs a task once, outside of its schedule; `wait` waits for the end of the run',
  scopes,
  body: RunNow,
  bodyOptional: true,
  query: RunNowQuery,
  idempotent: true,
  responses: { 200: RunRequested },
  async handle(call) {
    const { dependencies, query, body } = call;
    const { store } = dependencies;
    const id = idIn(call, 'id');
    const task = await taskWithId(call, id);
    mayChange(call, id)(task);
    await requirePermittedOwner(call, task.definition.created_by);
    await requireMoreRuns(dependencies, ownerOf(task), body?.params);
    const params = paramsFor(task.definition, body?.params);
    const context = { ...call.context, depth: await call.depth('run') };
    const manual = await requestManualRun(store, id, task, context, { params });
    const { runId, result, deduplicated, overlaps } = manual;
    const details = {
      task_id: id,
      run_id: runId,
      ...(deduplicated ? { deduplicated } : {}),
      ...(overlaps === null ? {} : { skip_reason: 'overlap' }),
      ...(query.wait === undefined ? {} : { run: await waitForEnd(call, runId, query.wait) }),
    };
    const position = result?.position ?? (await positionOf(store, runId));
    return success(messageOf(manual), details, position);
  },
});

/**
 * Returns the run once it has ended or the time is over. A response that will be recorded is built even if the client
 * has left.
 */
async function waitForEnd(
  { dependencies, keyed, gone }: Pick<Call, 'dependencies' | 'keyed' | 'gone'>,
  runId: string,
  seconds: number,
): Promise<object | null> {
  const run = await runAtEnd(dependencies, runId, seconds, keyed ? undefined : gone());
  return run === null ? null : showPlannedRun(dependencies, run);
}

const snooze = endpoint('POST /tasks/:id/snooze', {
  operationId: 'snoozeTask',
  summary: 'Postpones the next fire',
  scopes,
  body: SnoozeTask,
  idempotent: true,
  ifMatch: true,
  responses: { 200: Snoozed },
  async handle(call) {
    const { dependencies } = call;
    const { delay_seconds } = call.body;
    const task_id = idIn(call, 'id');
    const handled = await snoozeTaskCommand({ ...command(call), delaySeconds: delay_seconds });
    dependencies.tasks.learn(task_id, handled);
    const details = { task_id, delay_seconds, next_run_at: requireTask(handled.state).next_run_at };
    return success('the next fire is postponed', details, handled.position);
  },
});

const pause = endpoint('POST /tasks/:id/pause', {
  operationId: 'pauseTask',
  summary: 'Pauses a task; it does not fire until it is resumed',
  scopes,
  idempotent: true,
  ifMatch: true,
  responses: { 200: StatusChanged },
  async handle(call) {
    return changed(call, 'active', 'paused', await pauseTaskCommand(command(call)));
  },
});

const resume = endpoint('POST /tasks/:id/resume', {
  operationId: 'resumeTask',
  summary: 'Resumes a paused task',
  scopes,
  query: ResumeQuery,
  idempotent: true,
  ifMatch: true,
  responses: { 200: StatusChanged },
  async handle(call) {
    const { missed } = call.query;
    const id = idIn(call, 'id');
    const task = await taskWithId(call, id);
    mayChange(call, id)(task);
    await requirePermittedOwner(call, task.definition.created_by, ownerDenial);
    const handled = await resumeTaskCommand({ ...command(call), missed });
    return changed(call, 'paused', 'active', handled);
  },
});

const cancel = endpoint('POST /tasks/:id/cancel', {
  operationId: 'cancelTask',
  summary: 'Cancels a task permanently, with its runs',
  scopes,
  idempotent: true,
  ifMatch: true,
  responses: { 200: TaskCanceled },
  async handle(call) {
    const id = idIn(call, 'id');
    const { oldStatus, position } = await cancelTask(call, id, mayChange(call, id));
    // The caller may have requested a run just before.
    const queued = position !== null && position > call.ownPosition ? position : call.ownPosition;
    await call.dependencies.positions.wait(runsProjection, queued, MAX_LAG);
    const details = {
      task_id: id,
      old_status: oldStatus,
      new_status: 'canceled',
      canceled_runs: await cancelRunsOf(call, id),
    };
    return success('the task is canceled', details, position);
  },
});

export const taskControlEndpoints: readonly Endpoint[] = [runNow, snooze, pause, resume, cancel];

function messageOf({ deduplicated, overlaps }: ManualRun): string {
  if (deduplicated) return "no run was requested: an earlier run has used the task's dedupe key";
  return overlaps === null ? 'the run is requested' : 'skipped: another run of the task is running';
}

/** The position at which an earlier run was requested. */
async function positionOf(store: EventStore, runId: string): Promise<Position | null> {
  const [requested] = await store.readStream(streams.run(runId), { limit: 1 });
  return requested?.position ?? null;
}

/** The options of a command on a task. */
function command(
  call: Pick<
    Call,
    'dependencies' | 'parameters' | 'context' | 'expectedRevision' | 'caller' | 'reach' | 'own'
  >,
): Parameters<typeof pauseTaskCommand>[0] {
  const taskId = idIn(call, 'id');
  return {
    store: call.dependencies.store,
    taskId,
    context: call.context,
    mayChange: mayChange(call, taskId),
    expectedRevision: call.expectedRevision,
  };
}

/** The response to a change of status. The task may have been in that status already. */
function changed(
  call: Pick<Call, 'dependencies' | 'parameters'>,
  before: string,
  after: string,
  handled: Awaited<ReturnType<typeof pauseTaskCommand>>,
): EndpointResponse {
  const task_id = idIn(call, 'id');
  call.dependencies.tasks.learn(task_id, handled);
  const old_status = handled.events.length === 0 ? after : before;
  const details = { task_id, old_status, new_status: after };
  return success(`the task is ${after}`, details, handled.position);
}
