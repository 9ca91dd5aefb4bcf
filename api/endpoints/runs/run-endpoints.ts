import { load } from '../../../domain/handle.ts';
import { nameBasedId } from '../../../domain/ids.ts';
import { noWaits } from '../../../domain/runs/run-waits.ts';
import { runFold } from '../../../domain/runs/run.ts';
import { namespaceOf } from '../../../domain/namespaces/namespace.ts';
import { streams } from '../../../domain/streams.ts';
import { cancelRunCommand } from '../../../domain/tasks/task-commands.ts';
import { documentAsOf } from '../../../projections/reading/as-of.ts';
import { latestRunOf, runListing } from '../../../projections/reading/run-queries.ts';
import { runsProjection, type RunDocument } from '../../../projections/views/runs.ts';
import { LatestRun, Run, RunCanceled, RunPage } from '../../schemas/response-schemas-runs.ts';
import type { ApiDependencies } from '../../dependencies.ts';
import { PastQuery, pastAskedFor } from '../history/audit-access.ts';
import { endpoint, idIn, success, type Endpoint } from '../../endpoint.ts';
import { badRequest, notFound } from '../../errors.ts';
import { instantsOf, spanReader } from '../history/instant.ts';
import { emptyPage, listPage } from '../listing.ts';
import { inReach, ownTasks, taskInPath } from '../lookup.ts';
import { placeOfReading, viewRefusals } from '../history/replay-reading.ts';
import { cutRuns, showInList, showPlannedRun, type ShownRun } from './run-records.ts';
import { isSearch, searchPage, type RunSearch } from './run-search.ts';
import { ReadQuery, RunQuery } from '../../schemas/schemas.ts';
import { ownedTaskOf } from '../tasks/task-ownership.ts';

const scopes = ['runs:read'] as const;

const list = endpoint('GET /runs', {
  operationId: 'listRuns',
  summary: 'Lists runs, newest first',
  scopes,
  acceptsOwn: true,
  query: RunQuery,
  hasLargeResponse: true,
  reads: [runsProjection],
  responses: { 200: RunPage },
  refusals: viewRefusals,
  async handle(call) {
    const { query } = call;
    const { dependencies } = await placeOfReading(call);
    const { success: succeeded, state, trigger, until, start_time, end_time } = query;
    const task_id = query.task_id?.toLowerCase();
    const parent_run_id = query.parent_run_id?.toLowerCase();
    const given = { until, start_time, end_time };
    const times = await instantsOf(given, spanReader(call, task_id));
    const search = searchIn(query);
    // Other runs have no error.
    const isOfFailed = (query.error ?? query.error_group) !== undefined;
    const states = isOfFailed ? (['failed', 'retrying'] as const) : undefined;
    const filter = { task_id, parent_run_id, success: succeeded, state, states, trigger };
    const listing = runListing(call.reach, { ...filter, ...times });
    if (listing === null) return emptyPage(query);
    const show = (run: RunDocument): Promise<object> =>
      showInList(dependencies, run, query.include_errors);
    const { readModel } = dependencies;
    const { filters, sort } = listing;
    const asked = { filters: [...filters, ...(await ownTasks(call))], sort, cut: cutRuns };
    if (isSearch(search)) {
      const { limit, cursor } = query;
      return searchPage({ dependencies, search, listing: asked, limit, cursor, show });
    }
    return listPage(readModel, runsProjection, asked, query, show);
  },
});

const one = endpoint('GET /runs/:run_id', {
  operationId: 'getRun',
  summary: 'Shows a run with its attempts, steps and output, as it is or as it was',
  scopes,
  acceptsOwn: true,
  query: PastQuery,
  hasLargeResponse: true,
  reads: [runsProjection],
  responses: { 200: Run },
  async handle(call) {
    const id = idIn(call, 'run_id');
    const { store, readModel } = call.dependencies;
    const past = await pastAskedFor(call);
    const found =
      past === null
        ? (await readModel.get(runsProjection, id))?.document
        : await documentAsOf(store, runsProjection, streams.run(id), id, past);
    const run = inReach(call, 'run', id, found);
    const shown = await showPlannedRun(call.dependencies, run);
    return { body: past === null ? await withReasons(call.dependencies, run, shown) : shown };
  },
});

const cancel = endpoint('POST /runs/:run_id/cancel', {
  operationId: 'cancelRun',
  summary: 'Cancels a run; a running one is asked to stop',
  scopes: ['tasks:write'],
  idempotent: true,
  responses: { 200: RunCanceled },
  async handle(call) {
    const { dependencies, context } = call;
    const { store } = dependencies;
    const id = idIn(call, 'run_id');
    // Read from the log, because the view may lack a run that was just requested.
    const { state: run, position: known } = await load(store, streams.run(id), runFold);
    if (!('request' in run)) throw notFound('run', id);
    inReach(call, 'run', id, run.request);
    await ownedTaskOf(call, 'run', run.request.task_id);
    const commandId = nameBasedId('cancel run', context.commandId, id);
    const position = await cancelRunCommand(store, id, { ...context, commandId });
    const details = { run_id: id, old_state: run.state };
    return success('the run is canceled', details, position ?? known);
  },
});

const latest = endpoint('GET /task/:task_id/latest', {
  aliases: ['/runs/task/:task_id/latest'],
  operationId: 'getLatestRun',
  summary: 'Shows the most recent run of a task, or null if it never ran',
  scopes,
  acceptsOwn: true,
  query: ReadQuery,
  hasLargeResponse: true,
  reads: [runsProjection],
  responses: { 200: LatestRun },
  async handle(call) {
    const taskId = await taskInPath(call);
    const { dependencies } = call;
    const [run] = await dependencies.readModel.find(runsProjection, latestRunOf(taskId));
    return { body: run === undefined ? null : await showPlannedRun(dependencies, run.document) };
  },
});

/** The search in a query. @throws HttpError 400 for an offset, because only a cursor can continue a search */
function searchIn({ id, error, error_group, input, event_id, offset }: RunQuery): RunSearch {
  const search = {
    error,
    error_group,
    input,
    id: id?.toLowerCase(),
    event_id: event_id?.toLowerCase(),
  };
  if (offset === 0 || !isSearch(search)) return search;
  const issue =
    'cannot be given with id, error, error_group, input or event_id; continue with cursor';
  throw badRequest([{ field: 'offset', issue }]);
}

/** A run, with the reasons why its jobs are still waiting. */
async function withReasons(
  { jobs }: ApiDependencies,
  run: RunDocument,
  shown: ShownRun,
): Promise<object> {
  const reasons = await jobs.reasons(namespaceOf(run), run.waits ?? noWaits);
  if (reasons.size === 0) return shown;
  const waits = shown.waits.map((wait) => {
    const reason = reasons.get(wait.id);
    return reason === undefined ? wait : { ...wait, reason };
  });
  return { ...shown, waits };
}

export const runEndpoints: readonly Endpoint[] = [list, latest, one, cancel];
