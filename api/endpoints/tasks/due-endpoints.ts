import { toIso } from '../../../domain/clock.ts';
import { dueProjection } from '../../../projections/views/due.ts';
import { within } from '../../../projections/reach.ts';
import type { Filter } from '../../../projections/read-model.ts';
import { tasksProjection } from '../../../projections/views/tasks.ts';
import { DueQuery, DueTaskPage } from '../../schemas/due-schemas.ts';
import { endpoint, type Endpoint } from '../../endpoint.ts';
import { listPage } from '../listing.ts';
import { instantOf } from '../history/instant.ts';

/** Precedes all times, which are compared as strings. */
const FIRST = '0001';

const list = endpoint('GET /tasks/due', {
  operationId: 'listDueTasks',
  summary: 'Lists active tasks by their next run, soonest first',
  scopes: ['tasks:read'],
  query: DueQuery,
  hasLargeResponse: true,
  reads: [dueProjection, tasksProjection],
  responses: { 200: DueTaskPage },
  async handle({ dependencies, query, reach }) {
    const { readModel } = dependencies;
    const filters: Filter[] = [...within(reach), { field: 'next_run_at', op: 'gt', value: FIRST }];
    if (query.until !== undefined) {
      const until = toIso(instantOf('until', query.until, null));
      filters.push({ field: 'next_run_at', op: 'lte', value: until });
    }
    const sort = [{ field: 'next_run_at', direction: 'ascending' }] as const;
    return listPage(
      readModel,
      dueProjection,
      { filters, sort },
      query,
      async ({ task_id, next_run_at }) => {
        const task = await readModel.get(tasksProjection, task_id);
        return { task_id, title: task?.document.title ?? '', next_run_at: next_run_at ?? '' };
      },
    );
  },
});

export const dueEndpoints: readonly Endpoint[] = [list];
