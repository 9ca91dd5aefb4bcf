import { isUuid } from '../../../domain/ids.ts';
import { within, type Reach } from '../../../projections/reach.ts';
import type { ReadModel } from '../../../projections/read-model.ts';
import { latestRunsOf } from '../../../projections/reading/run-queries.ts';
import { p95OfTasks } from '../../../projections/reading/task-durations.ts';
import { runsProjection, type RunDocument } from '../../../projections/views/runs.ts';
import { statisticsProjection } from '../../../projections/views/statistics.ts';
import {
  MAX_OUTCOME_TASKS,
  Outcomes,
  OutcomesQuery,
  SHOWN_OUTCOMES,
} from '../../schemas/fire-schemas.ts';
import { endpoint, type Endpoint } from '../../endpoint.ts';
import { badRequest } from '../../errors.ts';
import { cutOutcomes } from './fire-runs.ts';

/** Days over which the 95th percentile is computed, today included. */
const PERIOD_DAYS = 7;

const list = endpoint('GET /tasks/outcomes', {
  operationId: 'listTaskOutcomes',
  summary: 'Shows the outcomes of the last 20 runs of many tasks, and how long their runs take',
  description:
    'Newest runs first, without skipped ones. Tasks without runs, and unknown ones, are left out. ' +
    'The percentile covers the last 7 days of UTC.',
  scopes: ['runs:read'],
  query: OutcomesQuery,
  reads: [runsProjection, statisticsProjection],
  responses: { 200: Outcomes },
  async handle({ dependencies, query, reach, context }) {
    const { readModel } = dependencies;
    const ids = idsIn(query.ids);
    const [p95, runs] = await Promise.all([
      p95OfTasks(readModel, reach, ids, PERIOD_DAYS, context.now),
      Promise.all(ids.map((id) => latestRuns(readModel, reach, id))),
    ]);
    // What has no runs is left out, so that the response names nothing that the caller does not see.
    const items = ids.flatMap((task_id, n) => {
      const shown = (runs[n] ?? []).map(showOutcome);
      const p95_execution_time_seconds = p95.get(task_id) ?? null;
      return shown.length === 0 ? [] : [{ task_id, runs: shown, p95_execution_time_seconds }];
    });
    return { body: { period_days: PERIOD_DAYS, items } };
  },
});

export const outcomesEndpoints: readonly Endpoint[] = [list];

/** @throws HttpError 400 for none, too many, or what is no id */
function idsIn(given: string): readonly string[] {
  const ids = [...new Set(given.toLowerCase().split(','))].filter((id) => id !== '');
  const fault = ids.find((id) => !isUuid(id));
  if (fault !== undefined) throw badRequest([{ field: 'ids', issue: `${fault} is not a UUID` }]);
  if (ids.length > 0 && ids.length <= MAX_OUTCOME_TASKS) return ids;
  const issue = `must be 1 to ${MAX_OUTCOME_TASKS} ids separated by commas`;
  throw badRequest([{ field: 'ids', issue }]);
}

async function latestRuns(
  readModel: ReadModel,
  reach: Reach,
  id: string,
): Promise<readonly RunDocument[]> {
  const query = latestRunsOf(id, SHOWN_OUTCOMES);
  const filters = [...within(reach), ...query.filters];
  const how = { counted: null, isLoose: true, cut: cutOutcomes };
  const { documents } = await readModel.list(runsProjection, { ...query, ...how, filters });
  return documents.map(({ text }) => JSON.parse(text) as RunDocument);
}

function showOutcome({ id, state, queued_at, started_at, finished_at }: RunDocument) {
  const took =
    started_at === null || finished_at === null
      ? null
      : Math.max(0, Date.parse(finished_at) - Date.parse(started_at)) / 1000;
  return { id, state, queued_at, duration_seconds: took };
}
