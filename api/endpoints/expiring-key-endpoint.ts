import { toIso } from '../../domain/clock.ts';
import { within } from '../../projections/reach.ts';
import type { Filter } from '../../projections/read-model.ts';
import { apiKeysProjection } from '../../projections/views/api-keys.ts';
import { endpoint, type Endpoint } from '../endpoint.ts';
import { ExpiringKeyPage, ExpiringQuery } from '../schemas/expiring-key-schemas.ts';
import { instantOf } from './history/instant.ts';
import { listPage } from './listing.ts';

/** Sorts before all times, which are compared as strings. */
const FIRST = '0001';

const list = endpoint('GET /agents/keys', {
  operationId: 'listExpiringKeys',
  summary: 'Lists the API keys of all agents that expire, the next to expire first',
  scopes: ['admin'],
  query: ExpiringQuery,
  reads: [apiKeysProjection],
  responses: { 200: ExpiringKeyPage },
  async handle({ dependencies, query, reach }) {
    const filters: Filter[] = [...within(reach), { field: 'expires_at', op: 'gt', value: FIRST }];
    if (query.until !== undefined) {
      const until = toIso(instantOf('until', query.until, null));
      filters.push({ field: 'expires_at', op: 'lte', value: until });
    }
    const sort = [{ field: 'expires_at', direction: 'ascending' }] as const;
    return listPage(
      dependencies.readModel,
      apiKeysProjection,
      { filters, sort },
      query,
      ({ id, agent_id, name, expires_at, last_used_at }) => {
        return { id, agent_id, name, expires_at: expires_at ?? '', last_used_at };
      },
    );
  },
});

export const expiringKeyEndpoints: readonly Endpoint[] = [list];
