import type { Position } from '../../../domain/event-store.ts';
import { load } from '../../../domain/handle.ts';
import { nameBasedId } from '../../../domain/ids.ts';
import { runFold } from '../../../domain/runs/run.ts';
import { streams } from '../../../domain/streams.ts';
import { cancelRunCommand } from '../../../domain/tasks/task-commands.ts';
import { documentAsOf } from '../../../projections/reading/as-of.ts';
import { latestRunOf, runListing } from '../../../projections/reading/run-queries.ts';
import { runsProjection, type RunDocument } from '../../../projections/views/runs.ts';
import {
  daysSince,
  statisticsProjection,
  tasksExecutedSince,
  type DayDocument,
} from '../../../projections/views/statistics.ts';
import {
  firstDayOf,
  statisticsSummary,
  taskStatistics,
} from '../../../projections/reading/statistics-answers.ts';
import {
  LatestRun,
  Run,
  RunCanceled,
  RunPage,
  StatisticsSummary,
  TaskStatistics,
} from '../../schemas/answer-schemas-runs.ts';
import { PastQuery, momentAsked } from '../history/audit-access.ts';
import { endpoint, idIn, type Call, type Endpoint } from '../../endpoint.ts';
import { notFound } from '../../errors.ts';
import { instantsOf, readSpanOf, zoneOfTask } from '../history/instant.ts';
import { emptyPage, listPage } from '../listing.ts';
import { placeOfReading, viewRefusals } from '../history/replay-reading.ts';
import { cutRuns, showInList, showRun } from './run-records.ts';
import { DaysQuery, ReadQuery, RunQuery } from '../../schemas/schemas.ts';
import { ownedTaskOf } from '../tasks/task-ownership.ts';

const scopes = ['runs:read'] as const;

const list = endpoint<unknown, RunQuery>({
  method: 'get',
  paths: ['/runs'],
  operationId: 'listRuns',
  summary: 'Lists runs, newest first',
  scopes,
  query: RunQuery,
  bulky: true,
  reads: [runsProjection],
  answers: { 200: RunPage },
  refusals: viewRefusals,
  async handle(call) {
    const { query } = call;
    const { dependencies } = await placeOfReading(call, 'GET /runs');
    const zoneOf = () => zoneOfTask(dependencies, query.task_id);
    const readTime = readSpanOf(zoneOf);
    const listing = runListing({
      task_id: query.task_id?.toLowerCase(),
      success: query.success,
      state: query.state,
      trigger: query.trigger,
      ...(await instantsOf({ start_time: query.start_time, end_time: query.end_time }, readTime)),
    });
    if (listing === null) return { body: emptyPage(query) };
    const show = (run: RunDocument): object => showInList(run, query.include_errors);
    const { readModel } = dependencies;
    return listPage(readModel, runsProjection, { ...listing, cut: cutRuns }, query, show);
  },
});

const one = endpoint<unknown, PastQuery>({
  method: 'get',
  paths: ['/runs/:run_id'],
  operationId: 'getRun',
  summary: 'Shows a run with its attempts, steps and output, as it is or as it was',
  scopes,
  query: PastQuery,
  bulky: true,
  reads: [runsProjection],
  answers: { 200: Run },
  async handle(call) {
    const id = idIn(call, 'run_id');
    const { store, readModel } = call.dependencies;
    const moment = await momentAsked(call, 'GET /runs/{run_id}');
    const run =
      moment === null
        ? (await readModel.get(runsProjection, id))?.document
        : await documentAsOf(store, runsProjection, streams.run(id), id, moment);
    if (!run) throw notFound('run', id);
    return { body: showRun(run) };
  },
});

const cancel = endpoint({
  method: 'post',
  paths: ['/runs/:run_id/cancel'],
  operationId: 'cancelRun',
  summary: 'Cancels a run; a running one is told to stop',
  scopes: ['tasks:write'],
  idempotent: true,
  answers: { 200: RunCanceled },
  async handle(call) {
    const { dependencies, context } = call;
    const { store } = dependencies;
    const id = idIn(call, 'run_id');
    // From the log and not from the view, which may not know yet of a run that was requested just now.
    const { state: run, position: known } = await load(store, streams.run(id), runFold);
    if (!('request' in run)) throw notFound('run', id);
    await ownedTaskOf(call, 'run', run.request.task_id);
    const commandId = nameBasedId('cancel run', context.commandId, id);
    const position = await cancelRunCommand(store, id, { ...context, commandId });
    const details = { run_id: id, old_state: run.state };
    const body = { success: true, message: 'the run is canceled', details };
    return { body, position: position ?? known };
  },
});

const latest = endpoint({
  method: 'get',
  paths: ['/task/:task_id/latest', '/runs/task/:task_id/latest'],
  operationId: 'getLatestRun',
  summary: 'The most recent run of a task, or null when it never ran',
  scopes,
  query: ReadQuery,
  bulky: true,
  reads: [runsProjection],
  answers: { 200: LatestRun },
  async handle(call) {
    const taskId = await knownTask(call);
    const [run] = await call.dependencies.readModel.find(runsProjection, latestRunOf(taskId));
    return { body: run === undefined ? null : showRun(run.document) };
  },
});

const TaskDays = DaysQuery(30);
const stats = endpoint<unknown, DaysQuery>({
  method: 'get',
  paths: ['/task/:task_id/stats', '/runs/task/:task_id/stats'],
  operationId: 'getTaskStatistics',
  summary: "Statistics of a task's runs",
  scopes,
  query: TaskDays,
  reads: [statisticsProjection],
  answers: { 200: TaskStatistics },
  refusals: viewRefusals,
  async handle(call) {
    const { query } = call;
    const place = await placeOfReading(call, 'GET /task/{task_id}/stats');
    const { now } = place;
    const taskId = await knownTask(call);
    const { days, position } = await daysOf(place, taskId, firstDayOf(query.days, now));
    return { body: taskStatistics(taskId, query.days, days, now), readPosition: position };
  },
});

const SummaryDays = DaysQuery(7);
const summary = endpoint<unknown, DaysQuery>({
  method: 'get',
  paths: ['/stats/summary', '/runs/stats/summary'],
  operationId: 'getStatistics',
  summary: 'Statistics of all runs',
  scopes,
  query: SummaryDays,
  reads: [statisticsProjection],
  answers: { 200: StatisticsSummary },
  refusals: viewRefusals,
  async handle(call) {
    const { query } = call;
    const place = await placeOfReading(call, 'GET /stats/summary');
    const { now } = place;
    const { days, tasks, position } = await daysOf(place, null, firstDayOf(query.days, now));
    return { body: statisticsSummary(query.days, days, tasks, now), readPosition: position };
  },
});

/** `/runs/stats/summary` before `/runs/:run_id`, which would take it for an id. */
export const runEndpoints: readonly Endpoint[] = [list, summary, latest, stats, one, cancel];

/** The days of a task, or of all; and for all how many tasks have run. From one snapshot. */
async function daysOf(
  { dependencies }: Pick<Call, 'dependencies'>,
  taskId: string | null,
  firstDay: string,
): Promise<{
  readonly days: readonly DayDocument[];
  readonly tasks: number;
  readonly position: Position;
}> {
  const { documents, total, position } = await dependencies.readModel.list(statisticsProjection, {
    ...daysSince(taskId, firstDay),
    counted: taskId === null ? tasksExecutedSince(firstDay) : null,
  });
  const days = documents.map(({ text }) => JSON.parse(text) as DayDocument);
  return { days, tasks: total ?? 0, position };
}

/** @throws HttpError 404 for a task that never was */
async function knownTask(call: Pick<Call, 'dependencies' | 'parameters'>): Promise<string> {
  const id = idIn(call, 'task_id');
  const { state } = await call.dependencies.tasks.get(id);
  if (state.status === 'none') throw notFound('task', id);
  return id;
}
