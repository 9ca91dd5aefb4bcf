import type { ArtifactKeeping } from '../artifacts/keep-result.ts';
import { fromIso } from '../clock.ts';
import type { EventStore, RecordedEvent } from '../event-store.ts';
import { RefusalError } from '../errors.ts';
import type { RunEvent } from '../events/catalogue.ts';
import { toNewEvents, type CommandContext } from '../handle.ts';
import { nameBasedId, retryRunId } from '../ids.ts';
import type { JsonObject } from '../json.ts';
import { RESERVATION_LIFETIME } from '../keys/stale-holders.ts';
import { requestOfRun, retryFailedRun, type RetriedRun } from './run-retry.ts';
import { streams } from '../streams.ts';
import { tryAppend } from '../try-append.ts';
import type { LiveTask } from '../tasks/task.ts';
import type { RetryStart } from '../vocabulary.ts';

/** One of many failed runs that a redrive command may retry. */
export interface Redrive {
  readonly store: EventStore;
  readonly runId: string;
  readonly from: RetryStart;
  readonly taskOf: (taskId: string) => Promise<LiveTask>;
  /** Whether the caller may retry runs of this task. */
  readonly owns: (task: LiveTask) => boolean;
  /** Whether the task accepts these params. */
  readonly takes: (task: LiveTask, params: JsonObject | undefined) => boolean;
  /** The context of the redrive command. */
  readonly context: CommandContext;
  /** Copies artifacts, as for a retry. */
  readonly artifacts?: ArtifactKeeping | undefined;
  /** Report only; change nothing. */
  readonly dryRun: boolean;
}

/** Why a run is not retried. */
export type RedriveSkipReason =
  /** A retry of it has succeeded. */
  | 'succeeded'
  /** A retry of it has not ended. */
  | 'under_way'
  | 'task_canceled'
  /** Its task belongs to another agent. */
  | 'not_owned'
  /** The run has not failed; the view that listed it was stale. */
  | 'not_failed'
  /** The run would start over, but the task no longer accepts its params. */
  | 'invalid_params';

export type RedriveResult =
  /** `run` is the run that is retried: the listed one, or the last of its retries. `retry` is null in a dry run. */
  | { readonly kind: 'retried'; readonly run: string; readonly retry: RetriedRun | null }
  | { readonly kind: 'passed-over'; readonly because: RedriveSkipReason };

/** The id of the command by which a redrive retries one run. */
const commandFor = (context: Pick<CommandContext, 'commandId'>, runId: string): string =>
  nameBasedId('redrive', context.commandId, runId);

/** Whether this command created the run: repeating the command must not redrive it. */
export function wasCreatedBy(
  context: Pick<CommandContext, 'commandId'>,
  run: { readonly id: string; readonly retry_of: string | null },
): boolean {
  const { id, retry_of } = run;
  return retry_of !== null && id === retryRunId(retry_of, commandFor(context, retry_of));
}

/**
 * Retries a failed run, unless a retry of it has succeeded or is running. If its last retry failed, retries that one.
 * If its last retry was canceled, skipped or never requested, retries the run itself again. Concurrent redrives create
 * one retry. Repeating the command completes its own retry.
 *
 * @throws EventStoreError, ArtifactError; repeating the command continues the work
 */
export async function redriveRun(redrive: Redrive): Promise<RedriveResult> {
  const { store, runId, from, taskOf, owns, takes, context, artifacts, dryRun } = redrive;
  const passOver = (because: RedriveSkipReason): RedriveResult => ({
    kind: 'passed-over',
    because,
  });
  const tip = await tipOf(store, runId, context);
  if (typeof tip === 'string') return passOver(tip);
  const request = await requestOfRun(store, tip.runId);
  if (request === null) return passOver('not_failed');
  const task = await taskOf(request.taskId);
  if (!owns(task)) return passOver('not_owned');
  if (task.status === 'canceled' && !tip.isOurs) return passOver('task_canceled');
  // A retry from the failed step keeps the task's revision, which accepted the params.
  if (from === 'start' && !tip.isOurs && !takes(task, request.params)) {
    return passOver('invalid_params');
  }
  if (dryRun) return { kind: 'retried', run: tip.runId, retry: null };
  if (tip.lost !== null && !(await abandon(store, tip.lost, tip.runId, context))) {
    return passOver('under_way');
  }
  try {
    const retry = await retryFailedRun({
      store,
      runId: tip.runId,
      from,
      task,
      artifacts,
      context: { ...context, commandId: commandFor(context, tip.runId) },
      expectedRevision: tip.revision,
    });
    return { kind: 'retried', run: tip.runId, retry };
  } catch (error) {
    // Another command retried it first, or voided this retry. Other runs are still redriven.
    const lostRace = ['REVISION_MISMATCH', 'STATE_CONFLICT'];
    if (!(error instanceof RefusalError) || !lostRace.includes(error.code)) throw error;
    return passOver('under_way');
  }
}

/** The run that a redrive retries. */
interface Tip {
  readonly runId: string;
  readonly revision: number;
  /** This command has retried it before. */
  readonly isOurs: boolean;
  /** A retry of the run that another command named but never requested. */
  readonly lost: string | null;
}

/** Follows the retries of a run to the last one, reading one event of each. */
async function tipOf(
  store: EventStore,
  runId: string,
  context: CommandContext,
): Promise<Tip | RedriveSkipReason> {
  let tip = { runId, last: await lastOf(store, runId) };
  for (;;) {
    const { last } = tip;
    if (last === null) return 'not_failed';
    const found = { runId: tip.runId, revision: last.revision, isOurs: false, lost: null };
    if (last.type === 'RunFailed') return found;
    if (last.type !== 'RunRetried') return 'not_failed';
    if (last.metadata.commandId === commandFor(context, tip.runId)) {
      return { ...found, isOurs: true };
    }
    const { run_id } = last.data;
    const next = await lastOf(store, run_id);
    switch (next?.type) {
      case undefined:
        // Named but not requested: the request will follow soon, or was lost in a crash.
        if (context.now - fromIso(last.metadata.occurredAt) <= RESERVATION_LIFETIME)
          return 'under_way';
        return { ...found, lost: run_id };
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

/** Closes the stream of a retry that was never requested, so that a late request fails. @returns false: it was requested */
async function abandon(
  store: EventStore,
  lost: string,
  retryOf: string,
  context: CommandContext,
): Promise<boolean> {
  const stream = streams.run(lost);
  const event: RunEvent = { type: 'Abandoned', data: { reservation: streams.run(retryOf) } };
  const commandId = nameBasedId('give up', commandFor(context, retryOf), lost);
  const events = toNewEvents(stream, [event], { ...context, commandId });
  return (await tryAppend(store, stream, events, 'none')) !== null;
}
