import { streams } from '../../../domain/streams.ts';
import { requireTask } from '../../../domain/tasks/task.ts';
import {
  createTaskCommand,
  nextRunAt,
  updateTaskCommand,
} from '../../../domain/tasks/task-commands.ts';
import { withDefaults, type TaskDefinition } from '../../../domain/tasks/task-definition.ts';
import type { Filter } from '../../../projections/read-model.ts';
import { agentsProjection } from '../../../projections/views/agents.ts';
import { runsProjection } from '../../../projections/views/runs.ts';
import { statisticsProjection } from '../../../projections/views/statistics.ts';
import {
  isJoinedOrder,
  taskFilters,
  taskOrder,
  tasksProjection,
  type TaskDocument,
} from '../../../projections/views/tasks.ts';
import { Task, TaskPage } from '../../schemas/response-schemas-tasks.ts';
import { PastQuery, pastAskedFor } from '../history/audit-access.ts';
import { createWithinQuota, requireEventRoom } from '../../access/count-quotas.ts';
import { exists } from '../../access/present-counts.ts';
import { countPayload } from '../../access/quota-gate.ts';
import { createdId, endpoint, etag, idIn, type Endpoint } from '../../endpoint.ts';
import { cutPayload, listPage } from '../listing.ts';
import { inReach, taskWithId } from '../lookup.ts';
import { placeOfReading, viewRefusals } from '../history/replay-reading.ts';
import { CreateTask, TaskQuery, UpdateTask } from '../../schemas/schemas.ts';
import { checkDefinition } from './task-definitions.ts';
import {
  cancelOrphan,
  checkNewOwner,
  checkOwner,
  mayChange,
  requireOwner,
} from './task-ownership.ts';
import { joinedPage } from './task-order-page.ts';
import { checkSecretUse } from './task-secrets.ts';
import { lastRunAt, pastTask, showDocument, showTask } from './task-records.ts';

const read = ['tasks:read'] as const;
const write = ['tasks:write'] as const;

const create = endpoint('POST /tasks', {
  operationId: 'createTask',
  summary: 'Creates a task',
  scopes: write,
  body: CreateTask,
  idempotent: true,
  responses: { 201: Task },
  responseHeaders: ['Location', 'ETag'],
  async handle(call) {
    const { dependencies, body, context } = call;
    const { store, tasks } = dependencies;
    const given = withDefaults(body);
    const { now } = context;
    const namespace = await checkOwner(call, given.created_by.toLowerCase());
    const { definition, warnings } = checkDefinition(given, dependencies, { namespace, now });
    const id = createdId('task', call);
    const secretWarnings = await checkSecretUse(dependencies, id, definition, { namespace, now });
    // With an Idempotency-Key, an earlier attempt may have created it.
    const isNew = !call.keyed;
    await requireEventRoom(dependencies, namespace);
    await countPayload(dependencies, namespace, definition.payload);
    const handled = await createWithinQuota(
      dependencies,
      { namespace, quota: 'tasks', isThere: () => exists(store, streams.task(id)) },
      () => createTaskCommand({ store, taskId: id, definition, namespace, context, isNew }),
    );
    tasks.learn(id, handled);
    await cancelOrphan(call, id, definition.created_by);
    const task = requireTask(handled.state);
    const next_run_at = isNew ? task.next_fire_at : await nextRunAt(store, id, task);
    return {
      status: 201,
      body: await showTask(
        id,
        task,
        { next_run_at, last_run_at: null, warnings: [...warnings, ...secretWarnings] },
        dependencies,
      ),
      headers: { Location: `/tasks/${id}`, ...etag(handled.revision) },
      position: handled.position,
    };
  },
});

const list = endpoint('GET /tasks', {
  operationId: 'listTasks',
  summary: 'Lists tasks, newest first or by `sort`',
  scopes: read,
  acceptsOwn: true,
  query: TaskQuery,
  hasLargeResponse: true,
  reads: [tasksProjection],
  alsoReads: ({ sort }) => (isJoinedOrder(sort) ? [statisticsProjection, agentsProjection] : []),
  responses: { 200: TaskPage },
  refusals: viewRefusals,
  async handle(call) {
    const { query } = call;
    const place = await placeOfReading(call);
    const { dependencies } = place;
    const filters = taskFilters(call.reach, {
      ...query,
      created_by: query.created_by?.toLowerCase(),
    });
    const own: readonly Filter[] =
      call.own === null ? [] : [{ field: 'created_by', op: 'eq', value: call.own }];
    const show = async (task: TaskDocument): Promise<object> =>
      showDocument(task, await lastRunAt(dependencies, task.id), dependencies);
    if (isJoinedOrder(query.sort)) {
      return joinedPage(call, place, query.sort, query, [...filters, ...own], show);
    }
    const order = taskOrder(query.sort);
    const { sort } = order;
    const asked = { filters: [...filters, ...order.filters, ...own], sort, cut: cutPayload };
    return listPage(dependencies.readModel, tasksProjection, asked, query, show);
  },
});

const show = endpoint('GET /tasks/:id', {
  operationId: 'getTask',
  summary: 'Shows a task, as it is or as it was',
  scopes: read,
  acceptsOwn: true,
  query: PastQuery,
  reads: [tasksProjection],
  // `last_run_at` comes from the last run, or from the statistics if that run was removed. Names come from the agents.
  cachedBy: [tasksProjection, runsProjection, statisticsProjection, agentsProjection],
  responses: { 200: Task },
  responseHeaders: ['ETag'],
  async handle(call) {
    const { dependencies } = call;
    const id = idIn(call, 'id');
    const zoneOf = async () => (await taskWithId(call, id)).definition.timezone;
    const past = await pastAskedFor(call, zoneOf);
    if (past !== null) return pastTask(call, id, past);
    const [kept, last] = await Promise.all([
      dependencies.readModel.get(tasksProjection, id),
      lastRunAt(dependencies, id),
    ]);
    const document = inReach(call, 'task', id, kept?.document);
    const body = await showDocument(document, last, dependencies);
    return { body, headers: etag(document.revision) };
  },
});

const update = endpoint('PUT /tasks/:id', {
  operationId: 'updateTask',
  summary: 'Changes the given fields of a task',
  scopes: write,
  body: UpdateTask,
  ifMatch: true,
  responses: { 200: Task },
  responseHeaders: ['ETag'],
  async handle(call) {
    const { dependencies, body, context, expectedRevision } = call;
    const { store, tasks } = dependencies;
    const id = idIn(call, 'id');
    const known = await taskWithId(call, id);
    mayChange(call, id)(known);
    const changed = { ...known.definition, ...(body as Partial<TaskDefinition>) };
    const place = { namespace: known.namespace, now: context.now };
    const { definition, warnings } = checkDefinition(changed, dependencies, place);
    if (body.created_by !== undefined) await checkNewOwner(call, known, definition.created_by);
    else if (known.status !== 'canceled') await requireOwner(call, definition.created_by);
    const secretWarnings = await checkSecretUse(dependencies, id, definition, place);
    await requireEventRoom(dependencies, known.namespace);
    await countPayload(dependencies, known.namespace, body.payload);
    const changes = Object.fromEntries(
      Object.keys(body).map((field) => [field, definition[field as keyof TaskDefinition]]),
    ) as Partial<TaskDefinition>;
    const handled = await updateTaskCommand({
      store,
      taskId: id,
      context,
      mayChange: mayChange(call, id),
      expectedRevision,
      changes,
    });
    tasks.learn(id, handled);
    const task = requireTask(handled.state);
    await cancelOrphan(call, id, task.definition.created_by);
    const [next_run_at, last_run_at] = await Promise.all([
      nextRunAt(store, id, task),
      lastRunAt(dependencies, id),
    ]);
    return {
      body: await showTask(
        id,
        task,
        { next_run_at, last_run_at, warnings: [...warnings, ...secretWarnings] },
        dependencies,
      ),
      headers: etag(handled.revision),
      position: handled.position,
    };
  },
});

export const taskEndpoints: readonly Endpoint[] = [create, list, show, update];
