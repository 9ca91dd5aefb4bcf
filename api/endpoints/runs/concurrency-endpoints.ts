import { concurrencyOf } from '../../../domain/keys/key-stream.ts';
import { MAX_WAITERS } from '../../../domain/keys/key.ts';
import type { ViewDocument, ReadModel } from '../../../projections/read-model.ts';
import { reaches } from '../../../projections/reach.ts';
import { runsProjection } from '../../../projections/views/runs.ts';
import {
  tasksProjection,
  tasksWithKey,
  type TaskDocument,
} from '../../../projections/views/tasks.ts';
import { ConcurrencyKey } from '../../schemas/response-schemas-schedules.ts';
import { endpoint, type Endpoint } from '../../endpoint.ts';
import { badRequest } from '../../errors.ts';
import { ConcurrencyQuery } from '../../schemas/schedule-schemas.ts';

/** The most characters of a key, as for a task's `concurrency_key`. */
const MAX_KEY_LENGTH = 200;

/** If the line is shorter than this, it has all waiting runs. */
const SHORT_LINE = MAX_WAITERS / 2;

/** If more tasks share a key, the runs behind its line are not counted. */
const MAX_TASKS = 1000;

/** How many tasks are read at a time. Each may have a large payload. */
const PAGE = 100;

const show = endpoint('GET /concurrency/:key', {
  operationId: 'getConcurrencyKey',
  summary: "Shows which runs hold a concurrency key of an agent's tasks, and which wait for it",
  scopes: ['tasks:read'],
  query: ConcurrencyQuery,
  reads: [tasksProjection, runsProjection],
  responses: { 200: ConcurrencyKey },
  async handle({ dependencies, caller, parameters, query, reach }) {
    const { store, readModel } = dependencies;
    const key = parameters['key'] ?? '';
    // In code points, as the schema of a task counts them.
    if ([...key].length > MAX_KEY_LENGTH) {
      throw badRequest([{ field: 'key', issue: `must have at most ${MAX_KEY_LENGTH} characters` }]);
    }
    const owner = query.created_by?.toLowerCase() ?? caller?.agentId ?? '';
    const { state } = await dependencies.agents.get(owner);
    const isHidden = 'namespace' in state && !reaches(reach, state.namespace);
    // The response for an agent out of reach is the same as for one that never existed.
    if (isHidden) return { body: { key, limit: null, holders: [], waiters: [], more_waiters: 0 } };
    const { limit, holders, waiters } = await concurrencyOf(store, owner, key);
    const more_waiters =
      waiters.length < SHORT_LINE ? 0 : await behindTheLine(readModel, owner, key, waiters.length);
    const shownLimit = limit ?? (await smallestLimit(readModel, owner, key));
    return { body: { key, limit: shownLimit, holders, waiters, more_waiters } };
  },
});

export const concurrencyEndpoints: readonly Endpoint[] = [show];

/** The smallest limit among the active tasks with the key; null when there is none. */
async function smallestLimit(
  readModel: ReadModel,
  owner: string,
  key: string,
): Promise<number | null> {
  const [first] = await readModel.find(tasksProjection, {
    filters: tasksWithKey(owner, key, ['active']),
    sort: [{ field: 'concurrency_limit', direction: 'ascending' }],
    limit: 1,
  });
  return first?.document.concurrency_limit ?? null;
}

/**
 * How many runs wait without a place in line: the queued runs of the tasks with this key, minus the runs in line. null
 * if too many tasks share the key.
 */
async function behindTheLine(
  readModel: ReadModel,
  owner: string,
  key: string,
  inLine: number,
): Promise<number | null> {
  const tasks: string[] = [];
  for (let last: ViewDocument<TaskDocument> | undefined; ;) {
    const page = await readModel.find(tasksProjection, {
      filters: tasksWithKey(owner, key, ['active', 'paused']),
      sort: [{ field: 'concurrency_limit', direction: 'ascending' }],
      limit: PAGE,
      ...(last && { after: { values: [last.document.concurrency_limit], key: last.key } }),
    });
    tasks.push(...page.map((task) => task.key));
    last = page.at(-1);
    if (page.length < PAGE || last === undefined) break;
    if (tasks.length > MAX_TASKS) return null;
  }
  const queued = await readModel.count(runsProjection, [
    { field: 'state', op: 'eq', value: 'queued' },
    { field: 'task_id', op: 'in', value: tasks },
  ]);
  return Math.max(0, queued - inLine);
}
