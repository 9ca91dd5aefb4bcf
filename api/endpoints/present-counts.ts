import type { EventStore } from '../../domain/event-store.ts';
import type { CountQuota } from '../../domain/namespaces/quotas.ts';
import { within } from '../../projections/reach.ts';
import { agentsProjection } from '../../projections/views/agents.ts';
import { tasksProjection } from '../../projections/views/tasks.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { requirePassed } from '../positions.ts';

/**
 * How many tasks or agents a namespace has, as of the log's present end.
 * @throws HttpError 503 where the view lags behind it; EventStoreError, ReadModelError
 */
export async function presentCount(
  dependencies: Pick<ApiDependencies, 'store' | 'readModel' | 'positions'>,
  namespace: string,
  quota: CountQuota,
): Promise<number> {
  const { store, readModel } = dependencies;
  const view = quota === 'tasks' ? tasksProjection : agentsProjection;
  await requirePassed(dependencies, [view], await store.head());
  if (quota === 'agents') return readModel.count(agentsProjection, within(namespace));
  const live = { field: 'status', op: 'in', value: ['active', 'paused'] } as const;
  return readModel.count(tasksProjection, [...within(namespace), live]);
}

/** Whether a stream has events. */
export async function exists(
  store: Pick<EventStore, 'readStream'>,
  stream: string,
): Promise<boolean> {
  return (await store.readStream(stream, { limit: 1 })).length > 0;
}
