import { toIso, type Instant } from '../../../domain/clock.ts';
import type { Position } from '../../../domain/event-store.ts';
import { explainTask } from '../../../domain/explain/explain-task.ts';
import { ABOUT, type RunFinder } from '../../../domain/explain/nearby-runs.ts';
import { ReadModelError, type Filter, type Projection } from '../../../projections/read-model.ts';
import { backfillsProjection } from '../../../projections/views/backfills.ts';
import { runsProjection } from '../../../projections/views/runs.ts';
import { Explanation } from '../../schemas/answer-schemas-schedules.ts';
import type { ApiDependencies } from '../../dependencies.ts';
import { endpoint, idIn, type Endpoint } from '../../endpoint.ts';
import { notFound } from '../../errors.ts';
import { havePassed, untilPassed } from '../../positions.ts';
import { instantOf } from '../history/instant.ts';
import { ExplainQuery } from '../../schemas/schedule-schemas.ts';
import { overlappingBackfills } from './overlapping-backfills.ts';

/** Most runs by hand or by event that are named on either side of the instant. */
const MOST_NEARBY = 3;

const explain = endpoint<unknown, ExplainQuery>({
  method: 'get',
  paths: ['/tasks/:id/explain'],
  operationId: 'explainTask',
  summary: 'Says from the log why a task did or did not fire at or about an instant',
  scopes: ['tasks:read'],
  query: ExplainQuery,
  answers: { 200: Explanation },
  async handle(call) {
    const { dependencies, query, context, ownPosition: own } = call;
    const places = { own, after: query.after };
    const { store, tasks } = dependencies;
    const taskId = idIn(call, 'id');
    // Before the task is looked up: what is no timestamp in any zone is a fault of the request.
    instantOf('at', query.at, 'UTC');
    const { state } = await tasks.get(taskId);
    if (state.status === 'none') throw notFound('task', taskId);
    const at = instantOf('at', query.at, state.definition.timezone);
    const explanation = await explainTask({
      store,
      taskId,
      at,
      now: context.now,
      nameOf: (agentId) => nameOf(dependencies, agentId),
      findRuns: (triggers) => findRuns(dependencies, { taskId, at, triggers }, places),
      findBackfills: (nominal) => findBackfills(dependencies, taskId, nominal, places),
    });
    return { body: explanation };
  },
});

export const taskExplainEndpoints: readonly Endpoint[] = [explain];

async function nameOf(
  { agents }: Pick<ApiDependencies, 'agents'>,
  agentId: string,
): Promise<string | null> {
  const { state } = await agents.get(agentId);
  return 'name' in state ? state.name : null;
}

type Views = Pick<ApiDependencies, 'readModel' | 'positions' | 'telemetry'>;

/** What a view is to have passed before it is looked into. */
interface Places {
  /** The caller's last command through this process; empty where there is none. */
  readonly own: Position;
  /** What the caller asks for. */
  readonly after: Position | undefined;
}

/** @throws HttpError 503 where the view does not come to what the caller asks for */
async function waitFor(views: Views, view: Projection, { own, after }: Places): Promise<void> {
  if (after === undefined) await havePassed(views, [view], own);
  else await untilPassed(views, [view], after, own);
}

/** Looks up the backfills whose span holds a nominal time. Without their view the rest stands all the same: null. */
async function findBackfills(
  dependencies: Views,
  taskId: string,
  nominal: Instant,
  places: Places,
): Promise<readonly string[] | null> {
  const { readModel } = dependencies;
  const span = { from: nominal, to: nominal };
  return withoutView(dependencies, taskId, 'backfills', async () => {
    await waitFor(dependencies, backfillsProjection, places);
    return (await overlappingBackfills(readModel, taskId, span)).map(({ id }) => id);
  });
}

/**
 * Looks up the runs by hand or by event about an instant, the nearest first. The view says which there are; what
 * they are is read from the log. Without the view the rest of the explanation stands all the same: null.
 */
async function findRuns(
  dependencies: Views,
  {
    taskId,
    at,
    triggers,
  }: {
    readonly taskId: string;
    readonly at: Instant;
    readonly triggers: Parameters<RunFinder>[0];
  },
  places: Places,
): Promise<readonly string[] | null> {
  const { readModel } = dependencies;
  const side = async (
    listed: boolean,
    span: Filter,
    direction: 'ascending' | 'descending',
  ): Promise<readonly { readonly id: string; readonly distance: number }[]> => {
    const found = await readModel.find(runsProjection, {
      filters: [
        { field: 'task_id', op: 'eq', value: taskId },
        { field: 'listed', op: 'eq', value: listed },
        { field: 'trigger', op: 'in', value: triggers },
        { field: 'queued_at', op: direction === 'ascending' ? 'gte' : 'lt', value: toIso(at) },
        span,
      ],
      sort: [{ field: 'queued_at', direction }],
      limit: MOST_NEARBY,
    });
    return found.map(({ document: { id, queued_at } }) => ({
      id,
      distance: Math.abs(Date.parse(queued_at) - at),
    }));
  };
  return withoutView(dependencies, taskId, 'runs', async () => {
    await waitFor(dependencies, runsProjection, places);
    const after: Filter = { field: 'queued_at', op: 'lte', value: toIso(at + ABOUT) };
    const before: Filter = { field: 'queued_at', op: 'gte', value: toIso(at - ABOUT) };
    const sides = await Promise.all(
      [true, false].flatMap((listed) => [
        side(listed, after, 'ascending'),
        side(listed, before, 'descending'),
      ]),
    );
    return sides
      .flat()
      .sort((a, b) => a.distance - b.distance)
      .slice(0, 2 * MOST_NEARBY)
      .map(({ id }) => id);
  });
}

/** What is looked up in a view; null, and told in the log, where the view can't be read. */
async function withoutView<T>(
  { telemetry }: Views,
  task: string,
  view: string,
  look: () => Promise<T>,
): Promise<T | null> {
  try {
    return await look();
  } catch (error) {
    if (!(error instanceof ReadModelError)) throw error;
    telemetry.log.warn('an explanation goes without a view', { task, view, error });
    return null;
  }
}
