import { toIso, type Instant } from '../../../domain/clock.ts';
import type { Position } from '../../../domain/event-store.ts';
import { explainTask } from '../../../domain/explain/explain-task.ts';
import { NEARBY_MS, type RunFinder } from '../../../domain/explain/nearby-runs.ts';
import { SecretError } from '../../../domain/secrets/secret-source.ts';
import { ReadModelError, type Projection } from '../../../projections/read-model.ts';
import { backfillsProjection } from '../../../projections/views/backfills.ts';
import { runsProjection } from '../../../projections/views/runs.ts';
import { Explanation } from '../../schemas/response-schemas-schedules.ts';
import type { ApiDependencies } from '../../dependencies.ts';
import { endpoint, idIn, type Endpoint } from '../../endpoint.ts';
import { havePassed, requirePassed } from '../../positions.ts';
import { instantOf } from '../history/instant.ts';
import { ExplainQuery } from '../../schemas/schedule-schemas.ts';
import { taskWithId } from '../lookup.ts';
import { quotaWait } from '../../access/count-quotas.ts';
import { slotWait } from './slot-wait.ts';
import { overlappingBackfills } from './overlapping-backfills.ts';

/** How many manual and event runs are named on either side of the instant. */
const MAX_NEARBY = 3;

const explain = endpoint('GET /tasks/:id/explain', {
  operationId: 'explainTask',
  summary: 'Explains from the log why a task did or did not fire at or about an instant',
  scopes: ['tasks:read'],
  acceptsOwn: true,
  query: ExplainQuery,
  responses: { 200: Explanation },
  async handle(call) {
    const { dependencies, query, context } = call;
    const taskId = idIn(call, 'id');
    // An invalid timestamp is reported before an unknown task.
    instantOf('at', query.at, 'UTC');
    const { definition, namespace } = await taskWithId(call, taskId);
    const at = instantOf('at', query.at, definition.timezone);
    const views = { ...dependencies, own: call.ownPosition, after: query.after };
    const explanation = await explainTask({
      store: dependencies.store,
      taskId,
      at,
      now: context.now,
      nameOf: (agentId) => nameOf(dependencies, agentId),
      readyRunsWaitFor: (agent) => waitOf(dependencies, { agent, namespace }),
      findRuns: (triggers) => findRuns(views, taskId, at, triggers),
      findBackfills: (nominal) => findBackfills(views, taskId, nominal),
      findExpiries: (names) => findExpiries(dependencies, namespace, names),
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

/** null if the coordination store can't be read, so that the rest is still explained. */
async function waitOf(
  dependencies: Pick<ApiDependencies, 'coordination' | 'telemetry' | 'quotas' | 'readModel'>,
  owner: { readonly agent: string; readonly namespace: string },
): Promise<string | null> {
  try {
    const { coordination } = dependencies;
    return (
      (await quotaWait(dependencies, owner.namespace)) ?? (await slotWait(coordination, owner))
    );
  } catch (error) {
    dependencies.telemetry.failures.failed('explained a task without the slots of workers', error);
    return null;
  }
}

/** Leaves out secrets whose backend is unavailable, so that the rest is still explained. */
async function findExpiries(
  { secretStore, telemetry }: Pick<ApiDependencies, 'secretStore' | 'telemetry'>,
  namespace: string,
  names: readonly string[],
): Promise<ReadonlyMap<string, Instant>> {
  const found = new Map<string, Instant>();
  for (const name of names) {
    try {
      const { expiresAt = null } = (await secretStore.access.limitsOf(namespace, name)) ?? {};
      if (expiresAt !== null) found.set(name, expiresAt);
    } catch (error) {
      if (!(error instanceof SecretError)) throw error;
      telemetry.failures.failed('explained a task without a secret', error, { name });
    }
  }
  return found;
}

interface Views extends Pick<ApiDependencies, 'readModel' | 'positions' | 'telemetry'> {
  /** Position of the caller's last command through this process. */
  readonly own: Position;
  /** The position that the views must have passed. */
  readonly after: Position | undefined;
}

/**
 * The backfills whose span includes a nominal time. null if the view cannot be read, so that the rest is still
 * explained.
 */
function findBackfills(
  views: Views,
  taskId: string,
  nominal: Instant,
): Promise<readonly string[] | null> {
  const span = { from: nominal, to: nominal };
  return readView(views, taskId, backfillsProjection, async () => {
    const found = await overlappingBackfills(views.readModel, taskId, span);
    return found.map(({ id }) => id);
  });
}

/**
 * The manual and event runs near an instant, the nearest first, from the view; their state is read from the log. null
 * if the view cannot be read, so that the rest is still explained.
 */
function findRuns(
  views: Views,
  taskId: string,
  at: Instant,
  triggers: Parameters<RunFinder>[0],
): Promise<readonly string[] | null> {
  const nearby = async (listed: boolean, isAfter: boolean) => {
    const found = await views.readModel.find(runsProjection, {
      filters: [
        { field: 'task_id', op: 'eq', value: taskId },
        { field: 'listed', op: 'eq', value: listed },
        { field: 'trigger', op: 'in', value: triggers },
        { field: 'queued_at', op: isAfter ? 'gte' : 'lt', value: toIso(at) },
        isAfter
          ? { field: 'queued_at', op: 'lte', value: toIso(at + NEARBY_MS) }
          : { field: 'queued_at', op: 'gte', value: toIso(at - NEARBY_MS) },
      ],
      sort: [{ field: 'queued_at', direction: isAfter ? 'ascending' : 'descending' }],
      limit: MAX_NEARBY,
    });
    return found.map(({ document: { id, queued_at } }) => ({
      id,
      distance: Math.abs(Date.parse(queued_at) - at),
    }));
  };
  return readView(views, taskId, runsProjection, async () => {
    const found = await Promise.all(
      [true, false].flatMap((listed) => [nearby(listed, true), nearby(listed, false)]),
    );
    return found
      .flat()
      .sort((a, b) => a.distance - b.distance)
      .slice(0, 2 * MAX_NEARBY)
      .map(({ id }) => id);
  });
}

/** Waits for a view and reads it; null, with a warning in the log, if the view cannot be read. @throws HttpError 503 */
async function readView<T>(
  views: Views,
  task: string,
  view: Projection,
  read: () => Promise<T>,
): Promise<T | null> {
  const { own, after, telemetry } = views;
  try {
    if (after === undefined) await havePassed(views, [view], own);
    else await requirePassed(views, [view], after, own);
    return await read();
  } catch (error) {
    if (!(error instanceof ReadModelError)) throw error;
    telemetry.failures.failed('explained a task without a view', error, { task, view: view.name });
    return null;
  }
}
