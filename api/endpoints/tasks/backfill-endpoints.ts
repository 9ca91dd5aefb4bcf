import {
  cancelBackfillCommand,
  planBackfill,
  previewBackfill,
  requestBackfillCommand,
} from '../../../domain/backfills/backfill-commands.ts';
import {
  DEFAULT_CONCURRENCY,
  backfillFold,
  type KnownBackfill,
} from '../../../domain/backfills/backfill.ts';
import type { Instant } from '../../../domain/clock.ts';
import type { Issue } from '../../../domain/errors.ts';
import type { DataOf } from '../../../domain/events/catalogue.ts';
import { load } from '../../../domain/handle.ts';
import { streams } from '../../../domain/streams.ts';
import { taskFold } from '../../../domain/tasks/task.ts';
import {
  backfillsOf,
  backfillsProjection,
  type BackfillDocument,
} from '../../../projections/views/backfills.ts';
import {
  Backfill,
  BackfillCanceled,
  BackfillPage,
  BackfillPlanned,
  BackfillRequested,
} from '../../schemas/response-schemas-schedules.ts';
import {
  createdId,
  endpoint,
  idIn,
  success,
  type EndpointResponse,
  type Call,
  type Endpoint,
} from '../../endpoint.ts';
import { HttpError, badRequest, notFound } from '../../errors.ts';
import { readInstant } from '../history/instant.ts';
import { requireMoreRuns } from '../../access/waiting-run-limit.ts';
import { paramsFor } from '../../params/params-check.ts';
import { listPage } from '../listing.ts';
import { inReach, taskWithId } from '../lookup.ts';
import { BackfillQuery, RequestBackfill } from '../../schemas/schedule-schemas.ts';
import { ReadQuery } from '../../schemas/schemas.ts';
import { overlappingBackfills } from './overlapping-backfills.ts';
import { mayChange, ownedTaskOf, ownerOf, requirePermittedOwner } from './task-ownership.ts';

const read = ['tasks:read'] as const;
const write = ['tasks:write'] as const;

/** Nominal times that a dry run shows. */
const MAX_SHOWN = 20;

const request = endpoint('POST /tasks/:id/backfill', {
  operationId: 'backfillTask',
  summary: 'Runs the nominal times of a past span, a few at a time',
  scopes: write,
  body: RequestBackfill,
  reads: [backfillsProjection],
  idempotent: true,
  responses: { 200: BackfillPlanned, 202: BackfillRequested },
  responseHeaders: ['Location'],
  async handle(call) {
    const { dependencies, body, context } = call;
    const { store } = dependencies;
    const taskId = idIn(call, 'id');
    const { state: task } = await load(store, streams.task(taskId), taskFold);
    if (task.status === 'none') throw notFound('task', taskId);
    mayChange(call, taskId)(task);
    const id = createdId('backfill', call);
    const earlierResponse = call.keyed ? await replayedResponse(call, id) : null;
    if (earlierResponse !== null) return earlierResponse;
    await requireMoreRuns(dependencies, ownerOf(task), body.params);
    const { only = 'missing', concurrency = DEFAULT_CONCURRENCY, dry_run = false } = body;
    const { timezone } = task.definition;
    const span = spanOf(body, timezone);
    const earlier =
      only === 'missing' ? await overlappingBackfills(dependencies.readModel, taskId, span) : [];
    const params = paramsFor(task.definition, body.params);
    const ask = { ...span, only, concurrency, params };
    const ids = earlier.map((backfill) => backfill.id);
    const plan = planBackfill(taskId, task, ask, ids, context.now);
    if (dry_run) {
      const { earlier: _earlier, task_revision: _revision, created_by: _owner, ...shown } = plan;
      const preview = await previewBackfill(store, task, plan, MAX_SHOWN);
      return success('nothing was requested', { ...shown, params: params ?? null, ...preview });
    }
    const running = earlier.find(({ state }) => state === 'running');
    if (running !== undefined) {
      const message = 'another backfill of the task is running in this span';
      throw new HttpError('conflict', message, { backfill_id: running.id, state: running.state });
    }
    await requirePermittedOwner(call, task.definition.created_by);
    const { position } = await requestBackfillCommand(store, id, plan, context);
    return accepted(id, plan, position);
  },
});

const list = endpoint('GET /tasks/:id/backfills', {
  operationId: 'listBackfills',
  summary: "Lists a task's backfills with their progress, newest first",
  scopes: read,
  acceptsOwn: true,
  query: BackfillQuery,
  hasLargeResponse: true,
  reads: [backfillsProjection],
  responses: { 200: BackfillPage },
  async handle(call) {
    const { dependencies, query } = call;
    const id = idIn(call, 'id');
    await taskWithId(call, id);
    const { readModel } = dependencies;
    return listPage(readModel, backfillsProjection, backfillsOf(id), query, show);
  },
});

const one = endpoint('GET /backfills/:backfill_id', {
  operationId: 'getBackfill',
  summary: 'Shows a backfill with its progress',
  scopes: read,
  acceptsOwn: true,
  query: ReadQuery,
  reads: [backfillsProjection],
  responses: { 200: Backfill },
  async handle(call) {
    const id = idIn(call, 'backfill_id');
    const kept = await call.dependencies.readModel.get(backfillsProjection, id);
    return { body: show(inReach(call, 'backfill', id, kept?.document)) };
  },
});

const cancel = endpoint('POST /backfills/:backfill_id/cancel', {
  operationId: 'cancelBackfill',
  summary: 'Cancels a backfill and its unfinished runs',
  scopes: write,
  idempotent: true,
  responses: { 200: BackfillCanceled },
  async handle(call) {
    const { dependencies, context } = call;
    const { store } = dependencies;
    const id = idIn(call, 'backfill_id');
    const { state: backfill } = await load(store, streams.backfill(id), backfillFold);
    if (backfill.state === 'none') throw notFound('backfill', id);
    inReach(call, 'backfill', id, backfill.request);
    await ownedTaskOf(call, 'backfill', backfill.request.task_id);
    const handled = await cancelBackfillCommand({ store, backfillId: id, context });
    const { request: asked, progress } = handled.state as KnownBackfill;
    const details = {
      backfill_id: id,
      task_id: asked.task_id,
      old_state: handled.events.length === 0 ? 'canceled' : 'running',
      new_state: 'canceled',
      requested: progress.requested,
      total: asked.total,
    };
    return success('the backfill is canceled', details, handled.position);
  },
});

export const backfillEndpoints: readonly Endpoint[] = [request, list, one, cancel];

/** A backfill without the field that only its scheduler needs. */
function show({ open: _open, params = null, ...shown }: BackfillDocument): object {
  return { ...shown, params };
}

/** The response to a repeated command: the backfill that it requested before, or null. */
async function replayedResponse(
  { dependencies }: Pick<Call, 'dependencies'>,
  id: string,
): Promise<EndpointResponse | null> {
  const { state, position } = await load(dependencies.store, streams.backfill(id), backfillFold);
  return state.state === 'none' ? null : accepted(id, state.request, position);
}

function accepted(
  id: string,
  plan: DataOf<'BackfillRequested'>,
  position: EndpointResponse['position'],
): EndpointResponse {
  const { task_id, task_revision, from, to, only, concurrency, total, params = null } = plan;
  const asked = { task_id, task_revision, from, to, only, concurrency, total, params };
  const details = { backfill_id: id, ...asked, requested: 0, state: 'running' };
  const headers = { Location: `/backfills/${id}` };
  return { ...success('the backfill is running', details, position), status: 202, headers };
}

/** @throws HttpError 400 naming each field that is no timestamp */
function spanOf(
  body: Pick<RequestBackfill, 'from' | 'to'>,
  timezone: string,
): { readonly from: Instant; readonly to: Instant } {
  const issues: Issue[] = [];
  const instantOf = (field: 'from' | 'to'): Instant => {
    const found = readInstant(body[field], timezone, field === 'to' ? 'last' : 'first');
    if (typeof found === 'number') return found;
    issues.push({ field, issue: found.issue });
    return 0;
  };
  const span = { from: instantOf('from'), to: instantOf('to') };
  const [first, ...rest] = issues;
  if (first !== undefined) throw badRequest([first, ...rest]);
  return span;
}
