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
} from '../../schemas/answer-schemas-tasks.ts';
import { endpoint, idIn, type Answer, type Call, type Endpoint } from '../../endpoint.ts';
import { notFound } from '../../errors.ts';
import { showRun } from '../runs/run-records.ts';
import type { RunDocument } from '../../../projections/views/runs.ts';
import { runAtEnd } from '../runs/run-waiting.ts';
import { ResumeQuery, RunNowQuery, SnoozeTask } from '../../schemas/schemas.ts';
import { cancelRunsOf, cancelTask } from './task-cancellation.ts';
import { mayChange } from './task-ownership.ts';

const scopes = ['tasks:write'] as const;

/** How long the view of runs may take to show what was queued before a cancel. Milliseconds. */
const LIMIT = 2000;

const runNow = endpoint<unknown, RunNowQuery>({
  method: 'post',
  paths: ['/tasks/:id/run_now'],
  operationId: 'runTask',
  summary: 'Runs a task once, outside of its schedule; waits for its end where that is asked for',
  scopes,
  query: RunNowQuery,
  idempotent: true,
  answers: { 200: RunRequested },
  async handle(call) {
    const { dependencies, context, query } = call;
    const { store } = dependencies;
    const id = idIn(call, 'id');
    const { state } = await dependencies.tasks.get(id);
    if (state.status === 'none') throw notFound('task', id);
    mayChange(call)(state);
    const manual = await requestManualRun(store, id, state, context);
    const { runId, result, deduplicated, overlaps } = manual;
    const details = {
      task_id: id,
      run_id: runId,
      ...(deduplicated ? { deduplicated } : {}),
      ...(overlaps === null ? {} : { skip_reason: 'overlap' }),
      ...(query.wait === undefined
        ? {}
        : { run: shown(await runAtEnd(dependencies, runId, query.wait, waiterOf(call))) }),
    };
    const body = { success: true, message: messageOf(manual), details };
    return { body, position: result?.position ?? (await positionOf(store, runId)) };
  },
});

/** Whose leaving ends a waiting. What a key remembers is for whoever comes with it again. */
const waiterOf = ({ keyed, gone }: Pick<Call, 'keyed' | 'gone'>): AbortSignal | undefined =>
  keyed ? undefined : gone();

const snooze = endpoint<SnoozeTask>({
  method: 'post',
  paths: ['/tasks/:id/snooze'],
  operationId: 'snoozeTask',
  summary: 'Puts the next fire off',
  scopes,
  body: SnoozeTask,
  idempotent: true,
  ifMatch: true,
  answers: { 200: Snoozed },
  async handle(call) {
    const { dependencies } = call;
    const { delay_seconds } = call.body;
    const task_id = idIn(call, 'id');
    const handled = await snoozeTaskCommand({
      ...command(call),
      delaySeconds: delay_seconds,
    });
    dependencies.tasks.learn(task_id, handled);
    const details = { task_id, delay_seconds, next_run_at: requireTask(handled.state).next_run_at };
    const done = { success: true, message: 'the next fire is put off', details };
    return { body: done, position: handled.position };
  },
});

const pause = endpoint({
  method: 'post',
  paths: ['/tasks/:id/pause'],
  operationId: 'pauseTask',
  summary: 'Pauses a task; it fires no more until it is resumed',
  scopes,
  idempotent: true,
  ifMatch: true,
  answers: { 200: StatusChanged },
  async handle(call) {
    return changed(call, 'active', 'paused', await pauseTaskCommand(command(call)));
  },
});

const resume = endpoint<unknown, ResumeQuery>({
  method: 'post',
  paths: ['/tasks/:id/resume'],
  operationId: 'resumeTask',
  summary: 'Resumes a paused task',
  scopes,
  query: ResumeQuery,
  idempotent: true,
  ifMatch: true,
  answers: { 200: StatusChanged },
  async handle(call) {
    const { missed } = call.query;
    const handled = await resumeTaskCommand({ ...command(call), missed });
    return changed(call, 'paused', 'active', handled);
  },
});

const cancel = endpoint({
  method: 'post',
  paths: ['/tasks/:id/cancel'],
  operationId: 'cancelTask',
  summary: 'Cancels a task for ever, and its runs',
  scopes,
  idempotent: true,
  ifMatch: true,
  answers: { 200: TaskCanceled },
  async handle(call) {
    const id = idIn(call, 'id');
    const { oldStatus, position } = await cancelTask(call, id, mayChange(call));
    // Its own last run may have been requested just before.
    const queued = position !== null && position > call.ownPosition ? position : call.ownPosition;
    await call.dependencies.positions.wait(runsProjection, queued, LIMIT);
    const details = {
      task_id: id,
      old_status: oldStatus,
      new_status: 'canceled',
      canceled_runs: await cancelRunsOf(call, id),
    };
    return { body: { success: true, message: 'the task is canceled', details }, position };
  },
});

/** What happens to a task beside its definition. */
export const taskControlEndpoints: readonly Endpoint[] = [runNow, snooze, pause, resume, cancel];

function messageOf({ deduplicated, overlaps }: ManualRun): string {
  if (deduplicated) return "the run that has used the task's dedupe key stands for this one";
  return overlaps === null ? 'the run is requested' : 'another run of the task is under way';
}

/** Of a run that was requested before. */
async function positionOf(store: EventStore, runId: string): Promise<Position | null> {
  const [requested] = await store.readStream(streams.run(runId), { limit: 1 });
  return requested?.position ?? null;
}

type TaskCommandParts = Parameters<typeof pauseTaskCommand>[0];

/** What a command on a task takes from its call. */
function command(
  call: Pick<Call, 'dependencies' | 'parameters' | 'context' | 'expectedRevision' | 'caller'>,
): TaskCommandParts {
  return {
    store: call.dependencies.store,
    taskId: idIn(call, 'id'),
    context: call.context,
    mayChange: mayChange(call),
    expectedRevision: call.expectedRevision,
  };
}

/** The answer to a change of status; one that found it as it should be has changed nothing. */
function changed(
  call: Pick<Call, 'dependencies' | 'parameters'>,
  before: string,
  after: string,
  handled: Awaited<ReturnType<typeof pauseTaskCommand>>,
): Answer {
  const task_id = idIn(call, 'id');
  call.dependencies.tasks.learn(task_id, handled);
  const old_status = handled.events.length === 0 ? after : before;
  const details = { task_id, old_status, new_status: after };
  const body = { success: true, message: `the task is ${after}`, details };
  return { body, position: handled.position };
}

const shown = (run: RunDocument | null): object | null => (run === null ? null : showRun(run));
