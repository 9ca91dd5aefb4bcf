import { Refusal } from '../domain/errors.ts';
import type { Position } from '../domain/event-store.ts';
import { nameBasedId } from '../domain/ids.ts';
import { cancelRunCommand, cancelTaskCommand, type MayChange } from '../domain/task-commands.ts';
import { runsProjection } from '../projections/runs.ts';
import type { Call } from './endpoint.ts';

const PAGE = 200;

/** How long the view of runs may take to show what was queued before the cancel. Milliseconds. */
const LIMIT = 2000;

/**
 * Cancels a task, then its runs: those that nobody has begun end, running ones are told to stop. A run that is
 * requested in the same moment is ended by the worker that would start it.
 */
export async function cancelTaskWithRuns(
  call: Pick<Call, 'dependencies' | 'context'> & Partial<Pick<Call, 'expectedRevision'>>,
  taskId: string,
  mayChange: MayChange,
): Promise<{
  readonly oldStatus: string;
  readonly canceledRuns: number;
  readonly position: Position | null;
}> {
  const { dependencies, context, expectedRevision } = call;
  const { store, readModel, positions } = dependencies;
  let oldStatus = 'canceled';
  const { position } = await cancelTaskCommand({
    store,
    taskId,
    context,
    mayChange: (task) => {
      mayChange(task);
      oldStatus = task.status;
    },
    expectedRevision,
  });
  if (position !== null) await positions.wait(runsProjection, position, LIMIT);
  let canceledRuns = 0;
  let after: string | null = null;
  do {
    const page: readonly { readonly key: string }[] = await readModel.find(runsProjection, {
      filters: [
        { field: 'task_id', op: 'eq', value: taskId },
        { field: 'state', op: 'in', value: ['queued', 'running', 'retrying'] },
      ],
      sort: [],
      limit: PAGE,
      ...(after === null ? {} : { after: { values: [], key: after } }),
    });
    for (const { key } of page) {
      const commandId = nameBasedId('cancel run', context.commandId, key);
      if (await cancelUnlessEnded(call, key, commandId)) canceledRuns += 1;
    }
    after = page.length < PAGE ? null : (page.at(-1)?.key ?? null);
  } while (after !== null);
  return { oldStatus, canceledRuns, position };
}

/** @returns whether there was something to do; a run that has just ended by itself is left as it is */
async function cancelUnlessEnded(
  { dependencies, context }: Pick<Call, 'dependencies' | 'context'>,
  runId: string,
  commandId: string,
): Promise<boolean> {
  try {
    const position = await cancelRunCommand(dependencies.store, runId, { ...context, commandId });
    return position !== null;
  } catch (error) {
    if (error instanceof Refusal && error.code === 'STATE_CONFLICT') return false;
    throw error;
  }
}
