import type { JsonObject } from '../../../domain/json.ts';
import { compilePipeline } from '../../../domain/pipeline/compile.ts';
import { stepIds } from '../../../domain/runs/retry-step.ts';
import { wasCreatedBy, redriveRun } from '../../../domain/runs/run-redrive.ts';
import { requestOfRun, retryFailedRun } from '../../../domain/runs/run-retry.ts';
import { taskAt } from '../../../domain/tasks/task-at.ts';
import type { RetryStart } from '../../../domain/vocabulary.ts';
import { runsProjection } from '../../../projections/views/runs.ts';
import { RunRetried, RunsRedriven } from '../../schemas/response-schemas-runs.ts';
import { endpoint, idIn, success, type Endpoint } from '../../endpoint.ts';
import { badRequest, notFound } from '../../errors.ts';
import { paramsFor, takesParams } from '../../params/params-check.ts';
import { inReach } from '../lookup.ts';
import { redriveListed } from './run-redrive.ts';
import { checkSelection, meantBy, selectionListing, taskOf } from './run-selection.ts';
import {
  MAX_REDRIVEN_RUNS,
  RedriveQuery,
  RedriveRuns,
  RetryQuery,
  RetryRun,
} from '../../schemas/run-retry-schemas.ts';
import { requireMoreRuns } from '../../access/waiting-run-limit.ts';
import { ownedTaskOf, ownerOf, owns, requirePermittedOwner } from '../tasks/task-ownership.ts';

const scopes = ['tasks:write'] as const;

const retry = endpoint('POST /runs/:run_id/retry', {
  operationId: 'retryRun',
  summary: 'Retries a failed run as a new run, from the failed step or from the start',
  scopes,
  body: RetryRun,
  bodyOptional: true,
  query: RetryQuery,
  idempotent: true,
  responses: { 200: RunRetried },
  async handle(call) {
    const { dependencies, query, body } = call;
    const { store, artifacts } = dependencies;
    const id = idIn(call, 'run_id');
    const from = query.from ?? 'failed_step';
    // Read from the log, because the view may not contain the failure yet.
    const request = await requestOfRun(store, id);
    if (request === null) throw notFound('run', id);
    inReach(call, 'run', id, request);
    const { taskId, taskRevision } = request;
    const task = await ownedTaskOf(call, 'run', taskId);
    await requirePermittedOwner(call, task.definition.created_by);
    await requireMoreRuns(dependencies, ownerOf(task), body?.params);
    const isAsPinned = from === 'start' || task.revision === taskRevision;
    const { definition } = isAsPinned ? task : await taskAt(store, taskId, taskRevision);
    const step = checkedStep(body?.step, from, definition.payload as JsonObject);
    const params = paramsFor(definition, { ...request.params, ...body?.params });
    const context = { ...call.context, depth: await call.depth('run') };
    const asked = { runId: id, from, step, task, context, params };
    const retried = await retryFailedRun({ store, artifacts, ...asked });
    const { runId: run_id, taskId: task_id, overlaps, position } = retried;
    const skipped = overlaps === null ? {} : { skip_reason: 'overlap' };
    const details = { run_id, retry_of: id, task_id, ...skipped };
    const message =
      overlaps === null
        ? 'the retry is requested'
        : `skipped: ${overlaps} is still running (overlap_policy: skip)`;
    return success(message, details, position);
  },
});

const redrive = endpoint('POST /runs/redrive', {
  operationId: 'redriveRuns',
  summary: 'Retries the failed runs that match a filter; dry_run only counts them',
  scopes,
  body: RedriveRuns,
  bodyOptional: true,
  query: RedriveQuery,
  reads: [runsProjection],
  idempotent: true,
  responses: { 200: RunsRedriven },
  async handle(call) {
    const { body: filter = {}, dependencies, query } = call;
    const { store, readModel, clock, artifacts } = dependencies;
    const dryRun = filter.dry_run === true || query.dry_run;
    await checkSelection(call, filter);
    const context = { ...call.context, depth: await call.depth('run') };
    const listing = await selectionListing(call, filter, ['failed']);
    const isMeant = meantBy(call, filter, listing);
    const tally = await redriveListed({
      readModel,
      clock,
      listing,
      runIds: filter.run_ids,
      cursor: filter.cursor,
      limit: filter.limit ?? MAX_REDRIVEN_RUNS,
      matches: async (run) => !wasCreatedBy(context, run) && (await isMeant(run)),
      redrive: (runId) =>
        redriveRun({
          store,
          artifacts,
          runId,
          from: filter.from ?? 'failed_step',
          taskOf: (taskId) => taskOf(call, taskId),
          owns: owns(call),
          takes: ({ definition }, params) => takesParams(definition, params),
          context,
          dryRun,
        }),
    });
    const { count, runs, passedOver: passed_over, left, nextCursor: next_cursor, position } = tally;
    const details = { dry_run: dryRun, count, passed_over, left, next_cursor, runs };
    return success(messageOf(count, dryRun), details, position);
  },
});

export const runRetryEndpoints: readonly Endpoint[] = [retry, redrive];

/**
 * The step to start with.
 * @param payload of the task revision that the run executes
 * @throws HttpError 400 for a step that the pipeline does not have, and for any step with `from=start`
 */
function checkedStep(
  step: string | undefined,
  from: RetryStart,
  payload: JsonObject,
): string | undefined {
  if (step === undefined) return undefined;
  if (from === 'start') {
    throw badRequest([{ field: 'step', issue: 'cannot be given together with from=start' }]);
  }
  const known = stepIds(compilePipeline(payload));
  if (known.includes(step)) return step;
  const issue = `must be a step of the run: ${known.slice(0, 20).join(', ')}`;
  throw badRequest([{ field: 'step', issue }]);
}

function messageOf(count: number, dryRun: boolean): string {
  const runs = count === 1 ? '1 failed run' : `${count} failed runs`;
  if (dryRun) return `${runs} would be retried`;
  return `${runs} ${count === 1 ? 'is' : 'are'} retried`;
}
