import { isMadeBy, redriveRun } from '../../../domain/runs/run-redrive.ts';
import { retryFailedRun, taskIdOfRun } from '../../../domain/runs/run-retry.ts';
import { requireTask, type LiveTask } from '../../../domain/tasks/task.ts';
import { runListing } from '../../../projections/reading/run-queries.ts';
import { runsProjection, type RunDocument } from '../../../projections/views/runs.ts';
import { RunRetried, RunsRedriven } from '../../schemas/answer-schemas-runs.ts';
import type { ApiDependencies } from '../../dependencies.ts';
import { endpoint, idIn, type Call, type Endpoint } from '../../endpoint.ts';
import { forbidden, notFound } from '../../errors.ts';
import { instantsOf, readSpanOf, zoneOfTask } from '../history/instant.ts';
import { redriveListed } from './run-redrive.ts';
import {
  MOST_REDRIVEN,
  RedriveQuery,
  RedriveRuns,
  RetryQuery,
} from '../../schemas/run-retry-schemas.ts';
import { mayChange, ownedTaskOf, owns } from '../tasks/task-ownership.ts';

const scopes = ['tasks:write'] as const;

const retry = endpoint<unknown, RetryQuery>({
  method: 'post',
  paths: ['/runs/:run_id/retry'],
  operationId: 'retryRun',
  summary: 'Retries a failed run by a new one, from the failed step or from the start',
  scopes,
  query: RetryQuery,
  idempotent: true,
  answers: { 200: RunRetried },
  async handle(call) {
    const { dependencies, context, query } = call;
    const { store } = dependencies;
    const id = idIn(call, 'run_id');
    const from = query.from ?? 'failed_step';
    // From the log and not from the view, which may not know yet that the run has failed.
    const taskId = await taskIdOfRun(store, id);
    if (taskId === null) throw notFound('run', id);
    const task = await ownedTaskOf(call, 'run', taskId);
    const retried = await retryFailedRun({ store, runId: id, from, task, context });
    const { runId: run_id, taskId: task_id, overlaps, position } = retried;
    const skipped = overlaps === null ? {} : { skip_reason: 'overlap' };
    const details = { run_id, retry_of: id, task_id, ...skipped };
    const message =
      overlaps === null ? 'the retry is requested' : `the retry does not run beside ${overlaps}`;
    return { body: { success: true, message, details }, position };
  },
});

const redrive = endpoint<RedriveRuns | undefined, RedriveQuery>({
  method: 'post',
  paths: ['/runs/redrive'],
  operationId: 'redriveRuns',
  summary: 'Retries the failed runs that pass a filter; dry_run only counts them',
  scopes,
  body: RedriveRuns,
  bodyOptional: true,
  query: RedriveQuery,
  reads: [runsProjection],
  idempotent: true,
  answers: { 200: RunsRedriven },
  async handle(call) {
    const { body: asked = {}, context, dependencies, query } = call;
    const { store, readModel, clock } = dependencies;
    const dryRun = asked.dry_run === true || query.dry_run;
    await checkFilter(call, asked);
    const owner = asked.created_by?.toLowerCase();
    const isMeant = ({ definition }: LiveTask) =>
      owner === undefined || definition.created_by === owner;
    const error = asked.error?.toLowerCase();
    const tally = await redriveListed({
      readModel,
      clock,
      listing: await failedRuns(asked, dependencies),
      cursor: asked.cursor,
      limit: asked.limit ?? MOST_REDRIVEN,
      fits: async (run: RunDocument) => {
        if (error !== undefined && !(run.error ?? '').toLowerCase().includes(error)) return false;
        if (isMadeBy(context, run)) return false;
        const task = await taskOf(call, run.task_id);
        return isMeant(task) && owns(call)(task);
      },
      redrive: (runId) =>
        redriveRun({
          store,
          runId,
          from: asked.from ?? 'failed_step',
          taskOf: (taskId) => taskOf(call, taskId),
          owns: owns(call),
          context,
          dryRun,
        }),
    });
    const { count, runs, passedOver: passed_over, left, nextCursor: next_cursor, position } = tally;
    const details = { dry_run: dryRun, count, passed_over, left, next_cursor, runs };
    return { body: { success: true, message: messageOf(count, dryRun), details }, position };
  },
});

export const runRetryEndpoints: readonly Endpoint[] = [retry, redrive];

function messageOf(count: number, dryRun: boolean): string {
  const runs = count === 1 ? '1 failed run' : `${count} failed runs`;
  if (dryRun) return `${runs} would be retried`;
  return `${runs} ${count === 1 ? 'is' : 'are'} retried`;
}

type Calling = Pick<Call, 'caller' | 'dependencies'>;

async function taskOf({ dependencies }: Calling, taskId: string): Promise<LiveTask> {
  return requireTask((await dependencies.tasks.get(taskId)).state);
}

/** @throws HttpError 403 for a filter that names another agent's tasks, but for an admin */
async function checkFilter(call: Calling, asked: RedriveRuns): Promise<void> {
  const { caller, dependencies } = call;
  const owner = asked.created_by?.toLowerCase();
  if (caller !== null && !caller.admin && owner !== undefined && owner !== caller.agentId) {
    throw forbidden("these are runs of another agent's tasks", ['admin'], caller.scopes);
  }
  if (asked.task_id === undefined) return;
  const { state } = await dependencies.tasks.get(asked.task_id.toLowerCase());
  if (state.status !== 'none') mayChange(call)(state);
}

/** The failed runs of a filter, oldest first. */
async function failedRuns(
  asked: RedriveRuns,
  dependencies: Pick<ApiDependencies, 'tasks'>,
): Promise<NonNullable<ReturnType<typeof runListing>>> {
  const zoneOf = () => zoneOfTask(dependencies, asked.task_id);
  const readTime = readSpanOf(zoneOf);
  const listing = runListing({
    task_id: asked.task_id?.toLowerCase(),
    state: 'failed',
    ...(await instantsOf({ start_time: asked.start_time, end_time: asked.end_time }, readTime)),
  });
  if (listing === null) throw new Error('a list of failed runs contradicts nothing');
  const sort = listing.sort.map(({ field }) => ({ field, direction: 'ascending' as const }));
  return { filters: listing.filters, sort };
}
