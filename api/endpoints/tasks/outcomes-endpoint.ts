import { isUuid } from '../../../domain/ids.ts';
import { namespaceOf } from '../../../domain/namespaces/namespace.ts';
import { reaches, within, type Reach } from '../../../projections/reach.ts';
import type { ReadModel } from '../../../projections/read-model.ts';
import { latestRunsOf } from '../../../projections/reading/run-queries.ts';
import { hasFailedLately } from '../../../projections/reading/task-health.ts';
import { runsProjection, type RunDocument } from '../../../projections/views/runs.ts';
import {
  LATEST_DAYS,
  lastDayKey,
  type LastDayDocument,
} from '../../../projections/views/statistics-tasks.ts';
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

const list = endpoint('GET /tasks/outcomes', {
  operationId: 'listTaskOutcomes',
  summary: 'Shows the outcomes of the last 20 runs of many tasks, and how long their runs take',
  description:
    'Runs are newest first, without skipped ones. Tasks without runs and unknown tasks are left out. ' +
    'The percentile covers the latest 100 runs that ended in the 7 days of UTC up to the latest of them.',
  scopes: ['runs:read'],
  query: OutcomesQuery,
  reads: [runsProjection, statisticsProjection],
  responses: { 200: Outcomes },
  async handle({ dependencies, query, reach, context }) {
    const { readModel } = dependencies;
    const ids = idsIn(query.ids);
    const [known, runs] = await Promise.all([
      Promise.all(ids.map((id) => statisticsOf(readModel, reach, id))),
      Promise.all(ids.map((id) => latestRuns(readModel, reach, id))),
    ]);
    // Tasks without runs are left out, so the response names nothing that the caller may not see.
    const items = ids.flatMap((task_id, n) => {
      const shown = (runs[n] ?? []).map(showOutcome);
      if (shown.length === 0) return [];
      const { p95_ms, failing, failed_day = null } = known[n] ?? {};
      const p95_execution_time_seconds = p95_ms === undefined ? null : p95_ms / 1000;
      const failed_in_period = hasFailedLately({ failed_day }, context.now);
      const signs = { failing: failing !== undefined, failed_in_period };
      return [{ task_id, runs: shown, p95_execution_time_seconds, ...signs }];
    });
    return { body: { period_days: LATEST_DAYS, items } };
  },
});

export const outcomesEndpoints: readonly Endpoint[] = [list];

/** @throws HttpError 400 for no ids, too many, or an invalid one */
function idsIn(given: string): readonly string[] {
  const ids = [...new Set(given.toLowerCase().split(','))].filter((id) => id !== '');
  const fault = ids.find((id) => !isUuid(id));
  if (fault !== undefined) throw badRequest([{ field: 'ids', issue: `${fault} is not a UUID` }]);
  if (ids.length > 0 && ids.length <= MAX_OUTCOME_TASKS) return ids;
  const issue = `must be 1 to ${MAX_OUTCOME_TASKS} ids separated by commas`;
  throw badRequest([{ field: 'ids', issue }]);
}

async function statisticsOf(
  readModel: ReadModel,
  reach: Reach,
  id: string,
): Promise<Partial<LastDayDocument> | null> {
  const found = await readModel.get(statisticsProjection, lastDayKey(id));
  return found !== null && reaches(reach, namespaceOf(found.document))
    ? (found.document as LastDayDocument)
    : null;
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
