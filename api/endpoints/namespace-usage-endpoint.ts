import { toIso } from '../../domain/clock.ts';
import { load } from '../../domain/handle.ts';
import { namespaceFold, requireNamespace } from '../../domain/namespaces/namespace-state.ts';
import { QUOTA_WINDOW, quotaCounter } from '../../domain/namespaces/quotas.ts';
import { countQuotas, rateQuotas } from '../../domain/namespaces/quota-names.ts';
import { streams } from '../../domain/streams.ts';
import { reaches } from '../../projections/reach.ts';
import { agentsProjection } from '../../projections/views/agents.ts';
import { publishedProjection } from '../../projections/views/published.ts';
import { tasksProjection } from '../../projections/views/tasks.ts';
import { usageProjection } from '../../projections/views/usage.ts';
import { endpoint, type Call, type Endpoint } from '../endpoint.ts';
import { notFound } from '../errors.ts';
import { presentCount } from '../access/present-counts.ts';
import { NamespaceUsage } from '../schemas/quota-schemas.ts';

const usage = endpoint('GET /namespaces/:name/usage', {
  operationId: 'getNamespaceUsage',
  summary: 'Shows the quotas of a namespace and their current use',
  scopes: [],
  reads: [tasksProjection, agentsProjection, publishedProjection, usageProjection],
  responses: { 200: NamespaceUsage },
  refusals: ['not_found'],
  async handle(call) {
    const { dependencies } = call;
    const { coordination, clock, quotas, jobs } = dependencies;
    const namespace = await namespaceInPath(call);
    const { weight = 1, ...limits } = await quotas.of(namespace);
    const counts = countQuotas.map(async (quota) => {
      const used = await presentCount(dependencies, namespace, quota);
      return { quota, used, limit: limits[quota] ?? null, frees_at: null };
    });
    const rates = rateQuotas.map(async (quota) => {
      const counted = await coordination.readCount(quotaCounter(quota, namespace), QUOTA_WINDOW);
      const limit = limits[quota] ?? null;
      const { sum = 0, remaining = QUOTA_WINDOW } = counted ?? {};
      const isUsedUp = limit !== null && sum >= limit;
      return {
        quota,
        // The counter includes rejected attempts, which used nothing.
        used: limit === null ? sum : Math.min(sum, limit),
        limit,
        frees_at: isUsedUp ? toIso(clock.now() + remaining) : null,
      };
    });
    const unfinished = jobs.unfinishedRuns({ agent: '', namespace });
    const body: NamespaceUsage = {
      namespace,
      weight,
      unfinished_runs: unfinished?.namespace ?? null,
      quotas: await Promise.all([...counts, ...rates]),
    };
    return { body };
  },
});

export const namespaceUsageEndpoints: readonly Endpoint[] = [usage];

/** @throws HttpError, RefusalError 404 for a namespace that is out of reach or does not exist */
async function namespaceInPath(call: Call): Promise<string> {
  const { dependencies, parameters, reach } = call;
  const name = parameters['name'] ?? '';
  if (!reaches(reach, name)) throw notFound('namespace', name);
  const { state } = await load(dependencies.store, streams.namespace(name), namespaceFold(name));
  requireNamespace(state, name);
  return name;
}
