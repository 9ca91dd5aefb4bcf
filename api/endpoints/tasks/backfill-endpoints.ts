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
} from '../../schemas/answer-schemas-schedules.ts';
import {
  createdId,
  endpoint,
  idIn,
  type Answer,
  type Call,
  type Endpoint,
} from '../../endpoint.ts';
import { HttpError, badRequest, notFound } from '../../errors.ts';
import { readInstant } from '../history/instant.ts';
import { listPage } from '../listing.ts';
import { BackfillQuery, RequestBackfill } from '../../schemas/schedule-schemas.ts';
import { ReadQuery } from '../../schemas/schemas.ts';
import { overlappingBackfills } from './overlapping-backfills.ts';
import { mayChange, ownedTaskOf } from './task-ownership.ts';

const read = ['tasks:read'] as const;
const write = ['tasks:write'] as const;

/** Nominal times that a dry run shows. */
const SHOWN = 20;

const request = endpoint<RequestBackfill>({
  method: 'post',
  paths: ['/tasks/:id/backfill'],
  operationId: 'backfillTask',
  summary: 'Runs the nominal times of a span of the past, a few at a time',
  scopes: write,
  body: RequestBackfill,
  reads: [backfillsProjection],
  idempotent: true,
  answers: { 200: BackfillPlanned, 202: BackfillRequested },
  answerHeaders: ['Location'],
  async handle(call) {
    const { dependencies, body, context } = call;
    const { store } = dependencies;
    const taskId = idIn(call, 'id');
    const { state: task } = await load(store, streams.task(taskId), taskFold);
    if (task.status === 'none') throw notFound('task', taskId);
    mayChange(call)(task);
    const id = createdId('backfill', call);
    const before = call.keyed ? await begun(call, id) : null;
    if (before !== null) return before;
    const { only = 'missing', concurrency = DEFAULT_CONCURRENCY, dry_run = false } = body;
    const { timezone } = task.definition;
    const span = spanOf(body, timezone);
    const earlier =
      only === 'missing' ? await overlappingBackfills(dependencies.readModel, taskId, span) : [];
    const ask = { ...span, only, concurrency };
    const ids = earlier.map((backfill) => backfill.id);
    const plan = planBackfill(taskId, task, ask, ids, context.now);
    if (dry_run) {
      const { earlier: _earlier, task_revision: _revision, created_by: _owner, ...shown } = plan;
      const preview = await previewBackfill(store, task, plan, SHOWN);
      const details = { ...shown, ...preview };
      return { body: { success: true, message: 'nothing was requested', details } };
    }
    const running = earlier.find(({ state }) => state === 'running');
    if (running !== undefined) {
      const message = 'another backfill of the task is under way in this span';
      throw new HttpError('conflict', message, { backfill_id: running.id, state: running.state });
    }
    const { position } = await requestBackfillCommand(store, id, plan, context);
    return accepted(id, plan, position);
  },
});

const list = endpoint<unknown, BackfillQuery>({
  method: 'get',
  paths: ['/tasks/:id/backfills'],
  operationId: 'listBackfills',
  summary: "Lists a task's backfills with their progress, newest first",
  scopes: read,
  query: BackfillQuery,
  bulky: true,
  reads: [backfillsProjection],
  answers: { 200: BackfillPage },
  async handle(call) {
    const { dependencies, query } = call;
    const id = idIn(call, 'id');
    const { state } = await dependencies.tasks.get(id);
    if (state.status === 'none') throw notFound('task', id);
    const { readModel } = dependencies;
    return listPage(readModel, backfillsProjection, backfillsOf(id), query, show);
  },
});

const one = endpoint({
  method: 'get',
  paths: ['/backfills/:backfill_id'],
  operationId: 'getBackfill',
  summary: 'Shows a backfill with its progress',
  scopes: read,
  query: ReadQuery,
  reads: [backfillsProjection],
  answers: { 200: Backfill },
  async handle(call) {
    const id = idIn(call, 'backfill_id');
    const kept = await call.dependencies.readModel.get(backfillsProjection, id);
    if (kept === null) throw notFound('backfill', id);
    return { body: show(kept.document) };
  },
});

const cancel = endpoint({
  method: 'post',
  paths: ['/backfills/:backfill_id/cancel'],
  operationId: 'cancelBackfill',
  summary: 'Cancels a backfill, and those of its runs that have not ended',
  scopes: write,
  idempotent: true,
  answers: { 200: BackfillCanceled },
  async handle(call) {
    const { dependencies, context } = call;
    const { store } = dependencies;
    const id = idIn(call, 'backfill_id');
    const { state: backfill } = await load(store, streams.backfill(id), backfillFold);
    if (backfill.state === 'none') throw notFound('backfill', id);
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
    const body = { success: true, message: 'the backfill is canceled', details };
    return { body, position: handled.position };
  },
});

/** Runs of the past, after the fact. */
export const backfillEndpoints: readonly Endpoint[] = [request, list, one, cancel];

/** A backfill without what only its scheduler needs. */
function show({ open: _open, ...shown }: BackfillDocument): object {
  return shown;
}

/** What a repetition is answered: the backfill that the same command began before; null where it did not. */
async function begun(
  { dependencies }: Pick<Call, 'dependencies'>,
  id: string,
): Promise<Answer | null> {
  const { state, position } = await load(dependencies.store, streams.backfill(id), backfillFold);
  return state.state === 'none' ? null : accepted(id, state.request, position);
}

function accepted(
  id: string,
  plan: DataOf<'BackfillRequested'>,
  position: Answer['position'],
): Answer {
  const { task_id, task_revision, from, to, only, concurrency, total } = plan;
  const asked = { task_id, task_revision, from, to, only, concurrency, total };
  const details = { backfill_id: id, ...asked, requested: 0, state: 'running' };
  return {
    status: 202,
    body: { success: true, message: 'the backfill is under way', details },
    headers: { Location: `/backfills/${id}` },
    position: position ?? null,
  };
}

/** @throws HttpError 400 naming each of the two that is no timestamp */
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
