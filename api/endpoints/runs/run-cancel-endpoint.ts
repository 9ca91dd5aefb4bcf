import type { Position } from '../../../domain/event-store.ts';
import { load, type CommandContext } from '../../../domain/handle.ts';
import { nameBasedId } from '../../../domain/ids.ts';
import { RefusalError } from '../../../domain/errors.ts';
import { hasEnded, requireRun, runFold } from '../../../domain/runs/run.ts';
import { streams } from '../../../domain/streams.ts';
import { cancelRunCommand } from '../../../domain/tasks/task-commands.ts';
import { unfinishedRunStates, type RunState } from '../../../domain/vocabulary.ts';
import { runsProjection, type RunDocument } from '../../../projections/views/runs.ts';
import { RunsCanceled } from '../../schemas/response-schemas-runs.ts';
import type { ApiDependencies } from '../../dependencies.ts';
import { endpoint, success, type Endpoint } from '../../endpoint.ts';
import { CancelRuns, MAX_REDRIVEN_RUNS, RedriveQuery } from '../../schemas/run-retry-schemas.ts';
import { checkSelection, meantBy, selectionListing } from './run-selection.ts';
import { walkRuns } from './run-walk.ts';

const cancel = endpoint('POST /runs/cancel', {
  operationId: 'cancelRuns',
  summary: 'Cancels the unfinished runs that match a filter; dry_run only counts them',
  scopes: ['tasks:write'],
  body: CancelRuns,
  bodyOptional: true,
  query: RedriveQuery,
  reads: [runsProjection],
  idempotent: true,
  responses: { 200: RunsCanceled },
  async handle(call) {
    const { body: filter = {}, context, dependencies, query } = call;
    const { readModel, clock, store } = dependencies;
    const dryRun = filter.dry_run === true || query.dry_run;
    await checkSelection(call, filter);
    const states = filter.state === undefined ? unfinishedRunStates : [filter.state];
    const listing = await selectionListing(call, filter, states);
    const limit = filter.limit ?? MAX_REDRIVEN_RUNS;
    const runs: Canceled['run'][] = [];
    let [count, ended] = [0, 0];
    let position: Position | null = null;
    const walked = await walkRuns({
      readModel,
      clock,
      listing,
      runIds: filter.run_ids,
      cursor: filter.cursor,
      room: () => limit - count,
      matches: meantBy(call, filter, listing),
      act: (run) => cancelOne({ store }, run, { context, dryRun, states }),
      done(canceled) {
        if (canceled === null) {
          ended += 1;
          return;
        }
        count += 1;
        if (!dryRun) runs.push(canceled.run);
        if (canceled.position !== null && canceled.position > (position ?? '')) {
          position = canceled.position;
        }
      },
    });
    const { left, nextCursor: next_cursor } = walked;
    const passed_over = { ended };
    const details = { dry_run: dryRun, count, passed_over, left, next_cursor, runs };
    return success(messageOf(count, dryRun), details, position);
  },
});

export const runCancelEndpoints: readonly Endpoint[] = [cancel];

interface Canceled {
  readonly run: { readonly run_id: string; readonly task_id: string; readonly old_state: RunState };
  readonly position: Position | null;
}

/** Cancels a run based on its stream, because the view may be behind. @returns null if it is in none of the states */
async function cancelOne(
  { store }: Pick<ApiDependencies, 'store'>,
  { id, task_id }: RunDocument,
  {
    context,
    dryRun,
    states,
  }: {
    readonly context: CommandContext;
    readonly dryRun: boolean;
    readonly states: readonly RunState[];
  },
): Promise<Canceled | null> {
  const { state } = await load(store, streams.run(id), runFold);
  if (hasEnded(state)) return null;
  const { state: old_state } = requireRun(state);
  if (!states.includes(old_state)) return null;
  const run = { run_id: id, task_id, old_state };
  if (dryRun) return { run, position: null };
  try {
    const commandId = nameBasedId('cancel run', context.commandId, id);
    return { run, position: await cancelRunCommand(store, id, { ...context, commandId }) };
  } catch (error) {
    // It has ended in the meantime.
    if (error instanceof RefusalError && error.code === 'STATE_CONFLICT') return null;
    throw error;
  }
}

function messageOf(count: number, dryRun: boolean): string {
  const runs = count === 1 ? '1 run' : `${count} runs`;
  if (dryRun) return `${runs} would be canceled`;
  return `${runs} ${count === 1 ? 'is' : 'are'} canceled`;
}
