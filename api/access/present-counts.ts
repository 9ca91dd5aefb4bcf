import type { EventStore } from '../../domain/event-store.ts';
import type { CountQuota } from '../../domain/namespaces/quota-names.ts';
import { within } from '../../projections/reach.ts';
import { agentsProjection } from '../../projections/views/agents.ts';
import { publishedProjection, topicsIn } from '../../projections/views/published.ts';
import { tasksProjection } from '../../projections/views/tasks.ts';
import { usageProjection } from '../../projections/views/usage.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { requirePassed } from '../positions.ts';

type Parts = Pick<ApiDependencies, 'store' | 'readModel' | 'positions'>;

const unended = { field: 'status', op: 'in', value: ['active', 'paused'] } as const;

/** Quotas whose use the view of usage counts. */
export type UsedQuota = 'events' | 'artifact_bytes';

/** The views from which the other quotas are counted. */
const views = {
  tasks: tasksProjection,
  agents: agentsProjection,
  topics: publishedProjection,
} as const;

/**
 * How much of a quota a namespace uses. Tasks, agents and topics are counted at the log's present end.
 * @throws HttpError 503 if a view lags behind it; EventStoreError, ReadModelError
 */
export async function presentCount(
  parts: Parts,
  namespace: string,
  quota: CountQuota,
): Promise<number> {
  if (quota === 'events' || quota === 'artifact_bytes') {
    return (await namespaceUse(parts, namespace))[quota];
  }
  const { store, readModel } = parts;
  await requirePassed(parts, [views[quota]], await store.head());
  switch (quota) {
    case 'tasks':
      return readModel.count(tasksProjection, [...within(namespace), unended]);
    case 'agents':
      return readModel.count(agentsProjection, within(namespace));
    case 'topics':
      return readModel.count(publishedProjection, topicsIn(namespace));
  }
}

/** How much of the log and the artifact store a namespace uses, according to the view. @throws ReadModelError */
export async function namespaceUse(
  { readModel }: Pick<Parts, 'readModel'>,
  namespace: string,
): Promise<Readonly<Record<UsedQuota, number>>> {
  const found = await readModel.get(usageProjection, namespace);
  return found?.document ?? { events: 0, artifact_bytes: 0 };
}

/** Whether a stream has events. */
export async function exists(
  store: Pick<EventStore, 'readStream'>,
  stream: string,
): Promise<boolean> {
  return (await store.readStream(stream, { limit: 1 })).length > 0;
}
