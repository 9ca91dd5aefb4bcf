import { fromIso, type Instant } from '../../domain/clock.ts';
import type { RecordedEvent } from '../../domain/event-store.ts';
import type { DataOf } from '../../domain/events/catalogue.ts';
import { namespaceOf } from '../../domain/namespaces/namespace.ts';
import { noWaits, type Wait } from '../../domain/runs/run-waits.ts';
import type { RunTrigger, UnfinishedRunState } from '../../domain/vocabulary.ts';
import type { RunDocument } from '../../projections/views/runs.ts';
import type { Party } from '../fairness/fair-queue.ts';

/** An unfinished run in a worker's memory. It is small, because there may be many. */
export interface QueuedRun {
  readonly id: string;
  readonly namespace: string;
  readonly taskId: string;
  readonly taskRevision: number;
  readonly createdBy: string;
  readonly trigger: RunTrigger;
  readonly priority: number;
  /** The run that waits for its end; null for none. */
  readonly parentRunId: string | null;
  /** The nominal time; null for a manual run or a run of an event. */
  readonly scheduledFor: string | null;
  /** Orders runs of an agent that have the same priority. */
  readonly since: Instant;
  /** Orders runs of the same millisecond, by when this process saw them. */
  readonly turn: number;
  /** Whether it was requested while this process followed the log. Then no earlier process can have died of it. */
  readonly isNew: boolean;
  /** Whether its stream has only the request, whose whole content is in this object. */
  plain: boolean;
  state: UnfinishedRunState;
  runAt: Instant;
  attempt: number;
  /** Its first start, or the time when this process saw that start; null before. */
  startedAt: Instant | null;
  interruptions: number;
  owner: string | null;
  /** Its suspended steps. */
  waits: readonly Wait[];
  cancelRequested: boolean;
  revision: number;
  /** Whether this process executes it. */
  taken: boolean;
  /** Whether it has ended and is no longer in the queue. */
  ended: boolean;
}

/** Receives changes of a `RunQueue`. */
export interface RunQueueListener {
  /** Called when runs may be ready to start. */
  readonly onReady?: () => void;
  /** Called with an event, from any process, of a run that this process executes. */
  readonly onTaken?: (run: QueuedRun, event: RecordedEvent) => void;
  /** Called when a run that this process does not execute has ended. Its `state` is still the previous one. */
  readonly onEnded?: (run: QueuedRun) => void;
  /** Called when a run has ended, in any process. */
  readonly onFinished?: (run: QueuedRun) => void;
  /** Called when a run's waits have changed, or when it has ended with open waits. */
  readonly onWaits?: (run: QueuedRun) => void;
  /** Called when a step starts to wait, before {@link onWaits}, which leaves out the arguments. */
  readonly onSuspended?: (suspended: DataOf<'RunStepSuspended'>, trace?: string) => void;
  /** Called when a run that has started once is queued, running or waiting, or has ended. */
  readonly onStarted?: (run: QueuedRun) => void;
}

/** A run from its request. @param turn a number that increases with each run of this process */
export function fromRequest(
  id: string,
  data: DataOf<'RunRequested'>,
  requestedAt: string,
  isNew: boolean,
  turn: number,
) {
  // A retry is queued by the time of its request, not by its nominal time.
  const since = (data.retry_of === null ? data.scheduled_for : null) ?? requestedAt;
  return {
    id,
    namespace: namespaceOf(data),
    taskId: data.task_id,
    taskRevision: data.task_revision,
    createdBy: data.created_by,
    trigger: data.trigger,
    priority: data.priority,
    parentRunId: data.parent?.run_id ?? null,
    scheduledFor: data.scheduled_for,
    since: fromIso(since),
    turn,
    isNew,
    plain: data.event === null && data.retry_of === null && data.params === undefined,
    state: 'queued' as const,
    runAt: fromIso(data.run_at),
    attempt: 0,
    startedAt: null,
    interruptions: 0,
    owner: null,
    waits: noWaits,
    cancelRequested: false,
    revision: 0,
    taken: false,
    ended: false,
  };
}

/** An unfinished run from the view. @param turn a number that increases with each run of this process */
export function fromDocument(run: RunDocument, turn: number) {
  const since = (run.retry_of === null ? run.scheduled_for : null) ?? run.queued_at;
  return {
    id: run.id,
    namespace: namespaceOf(run),
    taskId: run.task_id,
    taskRevision: run.task_revision,
    createdBy: run.created_by,
    trigger: run.trigger,
    priority: run.priority,
    parentRunId: run.parent_run_id ?? null,
    scheduledFor: run.scheduled_for,
    since: fromIso(since),
    turn,
    isNew: false,
    plain: run.revision === 0 && run.trigger !== 'event' && isPlain(run),
    state: run.state as UnfinishedRunState,
    runAt: fromIso(run.run_at),
    attempt: run.attempt,
    startedAt: run.started_at === null ? null : fromIso(run.started_at),
    interruptions: run.interruptions,
    owner: run.lease_owner,
    waits: run.waits ?? noWaits,
    cancelRequested: run.cancel_requested,
    revision: run.revision,
    taken: false,
    ended: false,
  };
}

/** Documents of an older shape lack `params`. */
const isPlain = ({ retry_of, params = null }: Partial<RunDocument>): boolean =>
  retry_of === null && params === null;

type Order = Pick<QueuedRun, 'priority' | 'since' | 'turn'>;

/** The order of an agent's runs: by priority, then age. */
export function goesBefore(a: Order, b: Order): boolean {
  if (a.priority !== b.priority) return a.priority < b.priority;
  return a.since !== b.since ? a.since < b.since : a.turn < b.turn;
}

/** Whether a run waits for a worker, now or at its `runAt`. */
export const mayStart = ({ state }: QueuedRun): boolean =>
  state === 'queued' || state === 'retrying';

/** Whether it waits in this process's queue. */
export const isWaiting = (run: QueuedRun): boolean => !run.ended && !run.taken && mayStart(run);

/** The agent and the namespace whose share a run uses. */
export const partyOf = ({ namespace, createdBy: agent }: QueuedRun): Party => ({
  namespace,
  agent,
});
