import { wasCreatedBy, redriveRun } from '../../../domain/runs/run-redrive.ts';
import { requestOfRun, retryFailedRun } from '../../../domain/runs/run-retry.ts';
import { taskAt } from '../../../domain/tasks/task-at.ts';
import { requireTask, type LiveTask } from '../../../domain/tasks/task.ts';
import { reaches } from '../../../projections/reach.ts';
import { runListing, type RunListing } from '../../../projections/reading/run-queries.ts';
import { runsProjection, type RunDocument } from '../../../projections/views/runs.ts';
import { RunRetried, RunsRedriven } from '../../schemas/response-schemas-runs.ts';
import { endpoint, idIn, success, type Call, type Endpoint } from '../../endpoint.ts';
import { forbidden, notFound } from '../../errors.ts';
import { instantsOf, spanReader } from '../history/instant.ts';
import { paramsFor, takesParams } from '../../params/params-check.ts';
import { inReach } from '../lookup.ts';
import { redriveListed } from './run-redrive.ts';
import {
  MAX_REDRIVEN_RUNS,
  RedriveQuery,
  RedriveRuns,
  RetryQuery,
  RetryRun,
} from '../../schemas/run-retry-schemas.ts';
import { requireMoreRuns } from '../../access/waiting-run-limit.ts';
import {
  mayChange,
  ownedTaskOf,
  ownerOf,
  owns,
  requirePermittedOwner,
} from '../tasks/task-ownership.ts';

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
    // From the log: the view may lag behind the failure.
    const request = await requestOfRun(store, id);
    if (request === null) throw notFound('run', id);
    inReach(call, 'run', id, request);
    const { taskId, taskRevision } = request;
    const task = await ownedTaskOf(call, 'run', taskId);
    await requirePermittedOwner(call, task.definition.created_by);
    await requireMoreRuns(dependencies, ownerOf(task), body?.params);
    const isAsPinned = from === 'start' || task.revision === taskRevision;
    const { definition } = isAsPinned ? task : await taskAt(store, taskId, taskRevision);
    const params = paramsFor(definition, { ...request.params, ...body?.params });
    const context = { ...call.context, depth: await call.depth('run') };
    const asked = { runId: id, from, task, context, params };
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
    await checkFilter(call, filter);
    const context = { ...call.context, depth: await call.depth('run') };
    const owner = filter.created_by?.toLowerCase();
    const error = filter.error?.toLowerCase();
    const tally = await redriveListed({
      readModel,
      clock,
      listing: await failedRuns(filter, call),
      cursor: filter.cursor,
      limit: filter.limit ?? MAX_REDRIVEN_RUNS,
      matches: async (run: RunDocument) => {
        if (error !== undefined && !(run.error ?? '').toLowerCase().includes(error)) return false;
        if (wasCreatedBy(context, run)) return false;
        const task = await taskOf(call, run.task_id);
        const isMeant = owner === undefined || task.definition.created_by === owner;
        return isMeant && owns(call)(task);
      },
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

function messageOf(count: number, dryRun: boolean): string {
  const runs = count === 1 ? '1 failed run' : `${count} failed runs`;
  if (dryRun) return `${runs} would be retried`;
  return `${runs} ${count === 1 ? 'is' : 'are'} retried`;
}

type Calling = Pick<Call, 'caller' | 'dependencies' | 'reach' | 'own'>;

async function taskOf({ dependencies }: Calling, taskId: string): Promise<LiveTask> {
  return requireTask((await dependencies.tasks.get(taskId)).state);
}

/** @throws HttpError 403 for a filter that names another agent's tasks, except for admins */
async function checkFilter(call: Calling, filter: RedriveRuns): Promise<void> {
  const { caller, dependencies } = call;
  const owner = filter.created_by?.toLowerCase();
  if (caller !== null && !caller.admin && owner !== undefined && owner !== caller.agentId) {
    throw forbidden("these are runs of another agent's tasks", ['admin'], caller.scopes);
  }
  if (filter.task_id === undefined) return;
  const id = filter.task_id.toLowerCase();
  const { state } = await dependencies.tasks.get(id);
  if (state.status === 'none' || !reaches(call.reach, state.namespace)) return;
  mayChange(call, id)(state);
}

/** The failed runs that match a filter, oldest first. */
async function failedRuns(
  { task_id, trigger, start_time, end_time }: RedriveRuns,
  call: Calling,
): Promise<RunListing> {
  const times = await instantsOf({ start_time, end_time }, spanReader(call, task_id));
  const listing = runListing(call.reach, {
    task_id: task_id?.toLowerCase(),
    trigger,
    state: 'failed',
    ...times,
  });
  if (listing === null) throw new Error('a filter of failed runs is never contradictory');
  const sort = listing.sort.map(({ field }) => ({ field, direction: 'ascending' as const }));
  return { filters: listing.filters, sort };
}
