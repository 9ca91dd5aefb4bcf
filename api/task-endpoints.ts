import type { Issue } from '../domain/errors.ts';
import type { JsonObject } from '../domain/json.ts';
import { checkPayload } from '../domain/pipeline/check.ts';
import { parseInstant, TimestampError } from '../domain/schedule/timestamp.ts';
import { requireTask, type LiveTask } from '../domain/task.ts';
import {
  createTaskCommand,
  pauseTaskCommand,
  requestManualRun,
  resumeTaskCommand,
  snoozeTaskCommand,
  updateTaskCommand,
} from '../domain/task-commands.ts';
import { MAX_PAYLOAD_BYTES, taskDefaults, type TaskDefinition } from '../domain/task-definition.ts';
import { latestStartedRunOf } from '../projections/run-queries.ts';
import { runsProjection } from '../projections/runs.ts';
import { taskFilters, tasksProjection, type TaskDocument } from '../projections/tasks.ts';
import type { ApiDependencies } from './dependencies.ts';
import { createdId, endpoint, type Call, type Caller, type Endpoint } from './endpoint.ts';
import { HttpError, badRequest, forbidden, notFound } from './errors.ts';
import { listPage } from './listing.ts';
import {
  CreateTask,
  ReadQuery,
  ResumeQuery,
  SnoozeTask,
  TaskQuery,
  UpdateTask,
} from './schemas.ts';
import { cancelTaskWithRuns } from './task-cancellation.ts';

const read = ['tasks:read'] as const;
const write = ['tasks:write'] as const;

const create = endpoint<CreateTask>({
  method: 'post',
  paths: ['/tasks'],
  summary: 'Creates a task',
  scopes: write,
  body: CreateTask,
  idempotent: true,
  async handle(call) {
    const { dependencies, body, context } = call;
    const definition = normalise({ ...taskDefaults, ...withoutUndefined(body) } as TaskDefinition);
    const { warnings } = checkDefinition(definition, dependencies);
    await checkOwner(call, definition.created_by);
    const id = createdId('task', call);
    const { state, revision, position } = await createTaskCommand({
      store: dependencies.store,
      taskId: id,
      definition,
      context,
    });
    return {
      status: 201,
      body: showTask(id, requireTask(state), warnings),
      headers: { Location: `/tasks/${id}`, ETag: `"${revision}"` },
      position,
    };
  },
});

const list = endpoint<unknown, TaskQuery>({
  method: 'get',
  paths: ['/tasks'],
  summary: 'Lists tasks, newest first',
  scopes: read,
  query: TaskQuery,
  reads: [tasksProjection],
  async handle({ dependencies, query }) {
    const filters = taskFilters(query);
    const sort = [{ field: 'created_at', direction: 'descending' }] as const;
    const page = await listPage(
      dependencies.readModel,
      tasksProjection,
      { filters, sort },
      query,
      (task) => task,
    );
    const items = await Promise.all(
      page.items.map(async (task) =>
        showDocument(task, await lastRunAt(dependencies, task.id), warningsOf(task, dependencies)),
      ),
    );
    return { body: { ...page, items } };
  },
});

const show = endpoint({
  method: 'get',
  paths: ['/tasks/:id'],
  summary: 'Shows a task',
  scopes: read,
  query: ReadQuery,
  reads: [tasksProjection],
  async handle({ dependencies, parameters }) {
    const id = taskId(parameters);
    const kept = await dependencies.readModel.get(tasksProjection, id);
    if (kept === null) throw notFound('task', id);
    const { document } = kept;
    const last = await lastRunAt(dependencies, id);
    return {
      body: showDocument(document, last, warningsOf(document, dependencies)),
      headers: { ETag: `"${document.revision}"` },
    };
  },
});

const update = endpoint<UpdateTask>({
  method: 'put',
  paths: ['/tasks/:id'],
  summary: 'Changes the fields that are given',
  scopes: write,
  body: UpdateTask,
  async handle(call) {
    const { dependencies, parameters, body } = call;
    const id = taskId(parameters);
    const known = (await dependencies.tasks.get(id)).state;
    if (known.status === 'none') throw notFound('task', id);
    mayChange(call)(known);
    const given = withoutUndefined(body) as Partial<TaskDefinition>;
    const definition = normalise({ ...known.definition, ...given });
    const { warnings } = checkDefinition(definition, dependencies);
    if (given.created_by !== undefined) await checkOwner(call, definition.created_by);
    const changes = Object.fromEntries(
      Object.keys(given).map((field) => [field, definition[field as keyof TaskDefinition]]),
    ) as Partial<TaskDefinition>;
    const { state, revision, position } = await updateTaskCommand({ ...command(call), changes });
    return {
      body: {
        ...showTask(id, requireTask(state), warnings),
        last_run_at: await lastRunAt(dependencies, id),
      },
      headers: { ETag: `"${revision}"` },
      position,
    };
  },
});

const runNow = endpoint({
  method: 'post',
  paths: ['/tasks/:id/run_now'],
  summary: 'Runs a task once, outside of its schedule',
  scopes: write,
  idempotent: true,
  async handle(call) {
    const { dependencies, parameters, context } = call;
    const id = taskId(parameters);
    const { state } = await dependencies.tasks.get(id);
    if (state.status === 'none') throw notFound('task', id);
    mayChange(call)(state);
    const { runId, result } = await requestManualRun(dependencies.store, id, state, context);
    const details = { task_id: id, run_id: runId };
    const body = { success: true, message: 'the run is requested', details };
    return { body, position: result?.position ?? null };
  },
});

const snooze = endpoint<SnoozeTask>({
  method: 'post',
  paths: ['/tasks/:id/snooze'],
  summary: 'Puts the next fire off',
  scopes: write,
  body: SnoozeTask,
  idempotent: true,
  async handle(call) {
    const { body, context, parameters } = call;
    const { delay_seconds } = body;
    const { state, position } = await snoozeTaskCommand({
      ...command(call),
      context: { ...context, reason: body.reason ?? context.reason },
      delaySeconds: delay_seconds,
    });
    const next_run_at = requireTask(state).next_run_at;
    const details = { task_id: taskId(parameters), delay_seconds, next_run_at };
    return { body: { success: true, message: 'the next fire is put off', details }, position };
  },
});

const pause = endpoint({
  method: 'post',
  paths: ['/tasks/:id/pause'],
  summary: 'Pauses a task; it fires no more until it is resumed',
  scopes: write,
  idempotent: true,
  async handle(call) {
    return changed(call, 'paused', (watching) => pauseTaskCommand(watching));
  },
});

const resume = endpoint<unknown, ResumeQuery>({
  method: 'post',
  paths: ['/tasks/:id/resume'],
  summary: 'Resumes a paused task',
  scopes: write,
  query: ResumeQuery,
  idempotent: true,
  async handle(call) {
    const { missed } = call.query;
    return changed(call, 'active', (watching) => resumeTaskCommand({ ...watching, missed }));
  },
});

const cancel = endpoint({
  method: 'post',
  paths: ['/tasks/:id/cancel'],
  summary: 'Cancels a task for ever, and its runs',
  scopes: write,
  idempotent: true,
  async handle(call) {
    const id = taskId(call.parameters);
    const { oldStatus, canceledRuns, position } = await cancelTaskWithRuns(
      call,
      id,
      mayChange(call),
    );
    const details = {
      task_id: id,
      old_status: oldStatus,
      new_status: 'canceled',
      canceled_runs: canceledRuns,
    };
    return { body: { success: true, message: 'the task is canceled', details }, position };
  },
});

export const taskEndpoints: readonly Endpoint[] = [
  create,
  list,
  show,
  update,
  runNow,
  snooze,
  pause,
  resume,
  cancel,
];

type TaskCommandParts = Parameters<typeof pauseTaskCommand>[0];

/** What a command on a task takes from its call. */
function command(
  call: Pick<Call, 'dependencies' | 'parameters' | 'context' | 'expectedRevision' | 'caller'>,
): TaskCommandParts {
  return {
    store: call.dependencies.store,
    taskId: taskId(call.parameters),
    context: call.context,
    mayChange: mayChange(call),
    expectedRevision: call.expectedRevision,
  };
}

async function changed(
  call: Call<unknown, unknown>,
  newStatus: string,
  run: (command: TaskCommandParts) => ReturnType<typeof pauseTaskCommand>,
) {
  let oldStatus = newStatus;
  const plain = command(call as Call);
  const { position } = await run({
    ...plain,
    mayChange: (task) => {
      plain.mayChange(task);
      oldStatus = task.status;
    },
  });
  const details = { task_id: plain.taskId, old_status: oldStatus, new_status: newStatus };
  return { body: { success: true, message: `the task is ${newStatus}`, details }, position };
}

/** Whoever has no `admin` changes only tasks of its own. */
function mayChange({ caller }: { readonly caller: Caller | null }): (task: LiveTask) => void {
  return (task) => {
    if (caller === null || caller.admin || task.definition.created_by === caller.agentId) return;
    throw forbidden("this is another agent's task", ['admin'], caller.scopes);
  };
}

/** Whom a task is to belong to: oneself, or for an admin any agent that exists. */
async function checkOwner(
  call: Pick<Call, 'caller' | 'dependencies'>,
  owner: string,
): Promise<void> {
  const { caller, dependencies } = call;
  if (caller === null || owner === caller.agentId) return;
  if (!caller.admin) {
    throw forbidden('created_by must be the caller', ['admin'], caller.scopes);
  }
  const { state } = await dependencies.agents.get(owner);
  if (state.status !== 'registered') {
    throw badRequest([{ field: 'created_by', issue: 'is not an agent' }]);
  }
}

/** Instants in UTC, ids in lower case. @throws HttpError 400 */
function normalise(definition: TaskDefinition): TaskDefinition {
  const { timezone } = definition;
  const instants: Record<string, string | null> = {};
  for (const field of ['starts_at', 'ends_at'] as const) {
    const text = definition[field];
    if (text === null) continue;
    try {
      instants[field] = new Date(parseInstant(text, timezone)).toISOString();
    } catch (error) {
      if (!(error instanceof TimestampError)) throw error;
      throw badRequest([{ field, issue: error.message }]);
    }
  }
  return { ...definition, ...instants, created_by: definition.created_by.toLowerCase() };
}

/** What the schema can't say. @throws HttpError 400, 413 */
function checkDefinition(
  definition: TaskDefinition,
  { tools }: ApiDependencies,
): { readonly warnings: readonly string[] } {
  const issues: Issue[] = [];
  if (definition.schedule_kind !== 'event' && definition.schedule_expr === null) {
    issues.push({ field: 'schedule_expr', issue: `is required for ${definition.schedule_kind}` });
  }
  const bytes = Buffer.byteLength(JSON.stringify(definition.payload));
  if (bytes > MAX_PAYLOAD_BYTES) {
    throw new HttpError('payload_too_large', `payload has ${bytes} bytes`, {
      field: 'payload',
      limit: MAX_PAYLOAD_BYTES,
    });
  }
  const { issues: faults, warnings } = checkPayload(definition.payload as JsonObject, tools);
  issues.push(...faults);
  const [first, ...rest] = issues;
  if (first !== undefined) throw badRequest([first, ...rest]);
  return { warnings };
}

function warningsOf(task: TaskDocument, { tools }: ApiDependencies): readonly string[] {
  return checkPayload(task.payload as JsonObject, tools).warnings;
}

/** A task as its own stream tells it: right after a command, when no view is needed. */
function showTask(id: string, task: LiveTask, warnings: readonly string[]): object {
  const { definition, status, created_at, updated_at, next_fire_at, next_run_at, revision } = task;
  const next = status === 'active' ? (next_run_at ?? next_fire_at) : null;
  return {
    id,
    ...definition,
    status,
    created_at,
    updated_at,
    next_run_at: next,
    last_run_at: null,
    exhausted: status === 'active' && definition.schedule_kind !== 'event' && next === null,
    revision,
    warnings,
  };
}

function showDocument(
  task: TaskDocument,
  last_run_at: string | null,
  warnings: readonly string[],
): object {
  const { rhythm: _rhythm, ...shown } = task;
  return { ...shown, last_run_at, warnings };
}

async function lastRunAt({ readModel }: ApiDependencies, id: string): Promise<string | null> {
  const [latest] = await readModel.find(runsProjection, latestStartedRunOf(id));
  return latest?.document.started_at ?? null;
}

function withoutUndefined(object: object): object {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined));
}

const taskId = (parameters: Readonly<Record<string, string>>): string =>
  (parameters['id'] ?? '').toLowerCase();
