import { fromIso } from '../clock.ts';
import { isConflict, type EventStore, type RecordedEvent } from '../event-store.ts';
import { Refusal } from '../errors.ts';
import type { RunEvent } from '../events/catalogue.ts';
import { toNewEvents, type CommandContext } from '../handle.ts';
import { nameBasedId, retryRunId } from '../ids.ts';
import { RESERVATION_LIFE } from '../keys/key-judgement.ts';
import { retryFailedRun, taskIdOfRun, type RetriedRun } from './run-retry.ts';
import { streams } from '../streams.ts';
import type { LiveTask } from '../tasks/task.ts';
import type { RetryStart } from '../vocabulary.ts';

/** A failed run that is put forward for a retry, of many. */
export interface Redrive {
  readonly store: EventStore;
  readonly runId: string;
  readonly from: RetryStart;
  readonly taskOf: (taskId: string) => Promise<LiveTask>;
  /** Whether the caller may retry runs of this task. */
  readonly owns: (task: LiveTask) => boolean;
  /** Of the command that redrives many. */
  readonly context: CommandContext;
  /** Look only. */
  readonly dryRun: boolean;
}

/** Why a run is not retried. */
export type PassedOver =
  /** A retry of it has succeeded. */
  | 'succeeded'
  /** A retry of it is not over. */
  | 'under_way'
  | 'task_canceled'
  /** Its task belongs to another agent. */
  | 'not_owned'
  /** It is no failed run (the view that put it forward is older). */
  | 'not_failed';

export type Redriven =
  /** `run` is the one that is retried: the one put forward, or the last of its retries. null: a dry run. */
  | { readonly kind: 'retried'; readonly run: string; readonly retry: RetriedRun | null }
  | { readonly kind: 'passed-over'; readonly because: PassedOver };

/** The id of the command by which a command that redrives many retries this one. */
const commandFor = (context: Pick<CommandContext, 'commandId'>, runId: string): string =>
  nameBasedId('redrive', context.commandId, runId);

/** Whether a run was made by this very command: it is not put forward again by its own repetition. */
export function isMadeBy(
  context: Pick<CommandContext, 'commandId'>,
  run: { readonly id: string; readonly retry_of: string | null },
): boolean {
  const { id, retry_of } = run;
  return retry_of !== null && id === retryRunId(retry_of, commandFor(context, retry_of));
}

/**
 * Retries a failed run, unless a retry of it has succeeded or is under way. Where its last retry has failed too, that
 * one is retried; where it was canceled, skipped, or never requested, the run itself is again. Two who redrive at
 * once make one retry; a repetition of the same command finds its own and completes it.
 *
 * @throws EventStoreError all that the log throws; a repetition goes on where this stopped
 */
export async function redriveRun(redrive: Redrive): Promise<Redriven> {
  const { store, runId, from, taskOf, owns, context, dryRun } = redrive;
  const tip = await tipOf(store, runId, context);
  if (typeof tip === 'string') return { kind: 'passed-over', because: tip };
  const taskId = await taskIdOfRun(store, tip.runId);
  if (taskId === null) return { kind: 'passed-over', because: 'not_failed' };
  const task = await taskOf(taskId);
  if (!owns(task)) return { kind: 'passed-over', because: 'not_owned' };
  if (task.status === 'canceled' && !tip.ours)
    return { kind: 'passed-over', because: 'task_canceled' };
  if (dryRun) return { kind: 'retried', run: tip.runId, retry: null };
  if (tip.unborn !== null && !(await giveUp(store, tip.unborn, tip.runId, context))) {
    return { kind: 'passed-over', because: 'under_way' };
  }
  try {
    const retry = await retryFailedRun({
      store,
      runId: tip.runId,
      from,
      task,
      context: { ...context, commandId: commandFor(context, tip.runId) },
      expectedRevision: tip.revision,
    });
    return { kind: 'retried', run: tip.runId, retry };
  } catch (error) {
    // Somebody else was faster with a retry of it, or has given this one up: it keeps no other from being retried.
    const lost = ['REVISION_MISMATCH', 'STATE_CONFLICT'];
    if (!(error instanceof Refusal) || !lost.includes(error.code)) throw error;
    return { kind: 'passed-over', because: 'under_way' };
  }
}

/** The run that a redrive retries. */
interface Tip {
  readonly runId: string;
  readonly revision: number;
  /** This command has retried it before. */
  readonly ours: boolean;
  /** Its retry by another, which was named and never requested. */
  readonly unborn: string | null;
}

/** Follows the retries of a run to the last one. Reads one event of each. */
async function tipOf(
  store: EventStore,
  runId: string,
  context: CommandContext,
): Promise<Tip | PassedOver> {
  let tip = { runId, last: await lastOf(store, runId) };
  for (;;) {
    const { last } = tip;
    if (last === null) return 'not_failed';
    const found = { runId: tip.runId, revision: last.revision, ours: false, unborn: null };
    if (last.type === 'RunFailed') return found;
    if (last.type !== 'RunRetried') return 'not_failed';
    if (last.metadata.commandId === commandFor(context, tip.runId)) return { ...found, ours: true };
    const { run_id } = last.data;
    const next = await lastOf(store, run_id);
    switch (next?.type) {
      case undefined:
        // Named, and not there: who named it is about to request it, or is gone.
        if (context.now - fromIso(last.metadata.occurredAt) <= RESERVATION_LIFE) return 'under_way';
        return { ...found, unborn: run_id };
      case 'RunFailed':
      case 'RunRetried':
        tip = { runId: run_id, last: next };
        break;
      case 'RunCanceled':
      case 'RunSkipped':
      case 'Abandoned':
        return found;
      case 'RunSucceeded':
        return 'succeeded';
      default:
        return 'under_way';
    }
  }
}

async function lastOf(store: EventStore, runId: string): Promise<RecordedEvent | null> {
  const [last] = await store.readStream(streams.run(runId), { direction: 'backwards', limit: 1 });
  return last ?? null;
}

/** Closes the stream of a retry that was never requested, so that a late request of it fails. @returns false: it came */
async function giveUp(
  store: EventStore,
  unborn: string,
  retryOf: string,
  context: CommandContext,
): Promise<boolean> {
  const stream = streams.run(unborn);
  const event: RunEvent = { type: 'Abandoned', data: { reservation: streams.run(retryOf) } };
  const commandId = nameBasedId('give up', commandFor(context, retryOf), unborn);
  try {
    await store.append(stream, toNewEvents(stream, [event], { ...context, commandId }), 'none');
    return true;
  } catch (error) {
    if (isConflict(error)) return false;
    throw error;
  }
}
