import { fromIso, toIso, type Instant } from '../clock.ts';
import { RefusalError } from '../errors.ts';
import type { DataOf, RunEvent } from '../events/catalogue.ts';
import { depthOf } from '../events/metadata.ts';
import type { EventPlace, Fold } from '../handle.ts';
import type { JsonObject } from '../json.ts';
import { namespaceField, namespaceOf } from '../namespaces/namespace.ts';
import { partialOutput } from './run-output.ts';
import { noSteps, withEnds, type StepEnds } from './run-steps.ts';
import { evolveWaits, isOpen, mayContinue, noWaits, stopWaits, type Wait } from './run-waits.ts';
import type { TaskDefinition } from '../tasks/task-definition.ts';
import { endedRunStates, type RetryStart, type RunState as StateName } from '../vocabulary.ts';

/**
 * A run: one execution of a task, with one id through all its attempts.
 *
 *   none ──RunRequested──► queued ──RunStarted──► running ──RunSucceeded──► succeeded
 *   none ──RunSkipped──► skipped     ▲  ▲            │ │ │
 *   none ──Abandoned──► abandoned    │  └─RunInterrupted┘ │ └──RunFailed──► failed
 *                                    │                  └─RunAttemptFailed─► retrying
 *                                    └──(RunStarted, once retry_at has come)──┘
 *   running ──RunReleased──► waiting ──RunStepResumed──► queued    (all steps left are suspended, until one resumes)
 *   queued, running, waiting, retrying ──RunCanceled──► canceled   (running: RunCancelRequested comes first)
 *   queued, waiting, retrying ──RunFailed──► failed        (it timed out while it waited to continue)
 *   queued, retrying ──RunSkipped──► skipped               (its task was paused before it started)
 *   failed ──RunRetried──► failed                          (another run retries it)
 *   any end ──RunRemoved──► removed                        (retention removed its events)
 */
export type RunState =
  | { readonly state: 'none' }
  | { readonly state: 'abandoned' }
  | { readonly state: 'removed' }
  | KnownRun;

export interface KnownRun {
  readonly state: StateName;
  readonly request: Request;
  /** The latest attempt; 0 before the first start. */
  readonly attempt: number;
  readonly lease_owner: string | null;
  readonly leased_until: string | null;
  readonly first_started_at: string | null;
  /** When it may start (again). */
  readonly run_at: string;
  /** Ends of steps, in their order, including those taken over from a retried run. See `endsOf`. */
  readonly steps: StepEnds;
  /** Suspended steps. */
  readonly waits: readonly Wait[];
  /** How often the present attempt has lost its worker. */
  readonly interruptions: number;
  readonly cancel_requested: boolean;
  readonly queued_at: string;
  /** The depth of the chain of runs, each causing the next, that led to this one. */
  readonly depth: number;
  /** The latest run that retries this one; null for none. */
  readonly retried_by: string | null;
  readonly revision: number;
}

type Requested = DataOf<'RunRequested'>;

type PinnedField =
  | 'task_id'
  | 'task_revision'
  | 'created_by'
  | 'trigger'
  | 'scheduled_for'
  | 'priority';

type Request = Pick<Requested, PinnedField | 'event' | 'retry_of'> & {
  readonly namespace: string;
  /** The run whose results this one reuses, if its request does not contain them; see `copyPriorResults`. */
  readonly prior_results: NonNullable<Requested['prior_results']> | null;
  /** Override the task's defaults, key by key; null: the run has only the defaults. */
  readonly params: JsonObject | null;
  /** The step that waits for this run's end; null for none. */
  readonly parent: NonNullable<Requested['parent']> | null;
};

/** An attempt that loses its worker more often than this has failed. */
export const MAX_INTERRUPTIONS = 5;

export const runFold: Fold<RunState, RunEvent> = {
  initial: { state: 'none' },
  evolve: evolveRun,
  namespaceOf: (state) => ('request' in state ? state.request.namespace : undefined),
};

function evolveRun(state: RunState, event: RunEvent, at: EventPlace): RunState {
  switch (event.type) {
    case 'RunRequested':
      return requested(event.data, at);
    case 'RunSkipped':
      if ('request' in state) return { ...state, state: 'skipped', revision: at.revision };
      return {
        ...requested({ ...event.data, run_at: at.metadata.occurredAt }, at),
        state: 'skipped',
      };
    case 'Abandoned':
      return { state: 'abandoned' };
    case 'RunRemoved':
      return { state: 'removed' };
    default:
      return 'request' in state ? evolveKnown(state, event, at) : state;
  }
}

function requested(
  data: Pick<Requested, PinnedField | 'run_at'> & Partial<Requested>,
  at: EventPlace,
): KnownRun {
  const { task_id, task_revision, created_by, trigger, scheduled_for, priority } = data;
  const pinned = { task_id, task_revision, created_by, trigger, scheduled_for, priority };
  return {
    state: 'queued',
    request: {
      ...pinned,
      namespace: namespaceOf(data),
      event: data.event ?? null,
      retry_of: data.retry_of ?? null,
      prior_results: data.prior_results ?? null,
      params: (data.params ?? null) as JsonObject | null,
      parent: data.parent ?? null,
    },
    attempt: 0,
    lease_owner: null,
    leased_until: null,
    first_started_at: null,
    run_at: data.run_at,
    steps: withEnds(noSteps, data.prior_steps ?? []),
    waits: noWaits,
    interruptions: 0,
    cancel_requested: false,
    queued_at: at.metadata.occurredAt,
    depth: depthOf(at.metadata),
    retried_by: null,
    revision: at.revision,
  };
}

type LaterEvent = Exclude<
  RunEvent,
  { type: 'RunRequested' | 'RunSkipped' | 'Abandoned' | 'RunRemoved' }
>;

function evolveKnown(state: KnownRun, event: LaterEvent, at: EventPlace): KnownRun {
  const { revision } = at;
  const waits = evolveWaits(state.waits, event);
  const free = { ...state, waits, revision, lease_owner: null, leased_until: null };
  switch (event.type) {
    case 'RunStarted': {
      const { worker, attempt, leased_until } = event.data;
      return {
        ...state,
        state: 'running',
        attempt,
        lease_owner: worker,
        leased_until,
        first_started_at: state.first_started_at ?? at.metadata.occurredAt,
        interruptions: attempt === state.attempt ? state.interruptions : 0,
        revision,
      };
    }
    case 'RunStepCompleted':
      return { ...state, steps: withEnds(state.steps, [event.data]), waits, revision };
    case 'RunStepSuspended':
    case 'RunStepProgressed':
      return { ...state, waits, revision };
    case 'RunStepResumed': {
      const continues = state.state === 'waiting' && mayContinue(waits);
      return { ...state, state: continues ? 'queued' : state.state, waits, revision };
    }
    case 'RunReleased':
      return { ...free, state: mayContinue(waits) ? 'queued' : 'waiting' };
    case 'RunInterrupted':
      return {
        ...free,
        // A run that loses its slot during a backoff still continues with the next attempt.
        state: state.state === 'retrying' ? 'retrying' : 'queued',
        interruptions: state.interruptions + (event.data.cause === 'lease_expired' ? 1 : 0),
      };
    case 'RunAttemptFailed':
      return { ...free, state: 'retrying', run_at: event.data.retry_at };
    case 'RunCancelRequested':
      return { ...state, cancel_requested: true, revision };
    case 'RunSucceeded':
      return { ...free, state: 'succeeded', steps: withEnds(state.steps, event.data.steps) };
    case 'RunFailed':
      return { ...free, state: 'failed', steps: withEnds(state.steps, event.data.steps) };
    case 'RunCanceled':
      return { ...free, state: 'canceled' };
    case 'RunRetried':
      return { ...state, retried_by: event.data.run_id, revision };
  }
}

/** Whether the attempt was waiting and one of its waits has ended, without a worker having died. */
export function isResumed({ state, attempt, interruptions, waits }: KnownRun): boolean {
  return state === 'queued' && attempt > 0 && interruptions === 0 && !waits.every(isOpen);
}

const ended: ReadonlySet<string> = new Set([...endedRunStates, 'abandoned', 'removed']);

/** Whether a run has ended; an ended run never starts again. */
export function hasEnded(state: RunState): boolean {
  return ended.has(state.state);
}

/**
 * Cancels a run that no worker has, or requests the cancellation of a running one. No event if that was done before.
 * @param payload of the task at the revision that the run is pinned to; null if no step of it has ended
 * @throws RefusalError `STATE_CONFLICT` if the run has ended otherwise
 */
export function cancelRun(state: RunState, payload: JsonObject | null): readonly RunEvent[] {
  const run = requireRun(state);
  if (run.state === 'canceled') return [];
  if (hasEnded(run)) {
    const message = run.state === 'skipped' ? 'the run was skipped' : `the run has ${run.state}`;
    throw new RefusalError('STATE_CONFLICT', message, { state: run.state });
  }
  if (run.state !== 'running') return [...stopWaits(run.waits), canceledEvent(run, payload)];
  return run.cancel_requested ? [] : [{ type: 'RunCancelRequested', data: {} }];
}

/** The end of a canceled run that no worker executes. @param payload as in {@link cancelRun} */
export function canceledEvent(
  run: Pick<KnownRun, 'attempt' | 'steps'>,
  payload: JsonObject | null,
): RunEvent {
  const { attempt } = run;
  if (attempt === 0 || payload === null) return { type: 'RunCanceled', data: { attempt } };
  return { type: 'RunCanceled', data: { attempt, output: partialOutput(run, payload) } };
}

/**
 * Records that another run retries this one. Each command that retries it requests a separate run.
 * @param step the step that it starts with; undefined: determined by `from`
 * @throws RefusalError `STATE_CONFLICT` if the run has not failed
 */
export function retryRun(
  known: RunState,
  by: string,
  from: RetryStart,
  step?: string,
): readonly RunEvent[] {
  const run = requireRun(known);
  if (run.state !== 'failed') {
    const { state } = run;
    const stands = state === 'succeeded' ? 'has succeeded' : `is ${state}`;
    const message = `only a failed run can be retried; this one ${stands}`;
    throw new RefusalError('STATE_CONFLICT', message, { state });
  }
  const chosen = step === undefined ? {} : { step };
  return [{ type: 'RunRetried', data: { run_id: by, from, ...chosen } }];
}

/** A worker takes the run. An interrupted attempt continues; a failed one is followed by the next. */
export function startRun(
  run: Pick<KnownRun, 'attempt' | 'state' | 'interruptions'>,
  worker: string,
  leasedUntil: Instant,
): Extract<RunEvent, { readonly type: 'RunStarted' }> {
  const continues = run.state === 'queued' && run.attempt > 0;
  const attempt = continues ? run.attempt : run.attempt + 1;
  return { type: 'RunStarted', data: { worker, attempt, leased_until: toIso(leasedUntil) } };
}

/**
 * A running run has lost its worker. It continues elsewhere without using up a retry, up to {@link MAX_INTERRUPTIONS}
 * times; the next time the attempt has failed. A run that was to be canceled is canceled.
 *
 * @param retryAt when the next attempt may start if this one has failed; null: no attempt is left
 * @param payload of the task at the revision that the run is pinned to
 */
export function interruptRun(
  state: RunState,
  now: Instant,
  retryAt: Instant | null,
  payload: JsonObject,
): readonly RunEvent[] {
  const run = requireRun(state);
  if (run.state !== 'running' || run.lease_owner === null) return [];
  const stopped = stopWaits(run.waits);
  if (run.cancel_requested) return [...stopped, canceledEvent(run, payload)];
  if (run.interruptions < MAX_INTERRUPTIONS) {
    const data = { worker: run.lease_owner, cause: 'lease_expired' as const };
    return [{ type: 'RunInterrupted', data }];
  }
  const error = `the run lost its worker ${run.interruptions + 1} times`;
  const { attempt } = run;
  if (retryAt !== null) {
    const retry_at = toIso(retryAt);
    const data = { attempt, error, step: null, retry_at };
    return [...stopped, { type: 'RunAttemptFailed', data }];
  }
  return [...stopped, failed(run, run.first_started_at ?? toIso(now), error, payload)];
}

/**
 * A run that no worker executes has timed out: it fails, even if attempts are left. No event for a run that is executed
 * (its worker ends it), has never started, or has ended.
 *
 * @param timeoutSeconds of the task; it has passed since the first start
 * @param payload of the task at the revision that the run is pinned to
 */
export function timeOutRun(
  state: RunState,
  timeoutSeconds: number,
  payload: JsonObject,
): readonly RunEvent[] {
  if (!('request' in state) || state.state === 'running' || hasEnded(state)) return [];
  if (state.first_started_at === null) return [];
  const stopped = stopWaits(state.waits);
  if (state.cancel_requested) return [...stopped, canceledEvent(state, payload)];
  return [...stopped, failed(state, state.first_started_at, timeoutError(timeoutSeconds), payload)];
}

/** The end of a failed run that no worker executes. */
function failed(run: KnownRun, started_at: string, error: string, payload: JsonObject): RunEvent {
  const { attempt, request } = run;
  const data = { task_id: request.task_id, started_at, attempt, error, step: null, steps: [] };
  const output = partialOutput(run, payload);
  return { type: 'RunFailed', data: { ...data, output, ...namespaceField(request.namespace) } };
}

/** The error of a run that timed out. */
export function timeoutError(timeoutSeconds: number): string {
  return `the run timed out after ${timeoutSeconds} s`;
}

type Backoff = Pick<
  TaskDefinition,
  'max_retries' | 'backoff_strategy' | 'retry_delay_seconds' | 'retry_max_delay_seconds'
>;

/**
 * When a run may be tried again after its n-th attempt failed; null if no retry is left before its deadline.
 *
 * @param atLeastMs the delay that the called service asked for
 * @param deadline of the whole run; null: none
 */
export function retryTime(
  attempt: number,
  backoff: Backoff,
  now: Instant,
  random: () => number,
  atLeastMs = 0,
  deadline: Instant | null = null,
): Instant | null {
  if (attempt > backoff.max_retries) return null;
  const at = now + Math.max(atLeastMs, delayAfter(attempt, backoff, random) * 1000);
  return deadline !== null && at >= deadline ? null : at;
}

/** Seconds; at most `retry_max_delay_seconds`. */
function delayAfter(attempt: number, backoff: Backoff, random: () => number): number {
  const { retry_delay_seconds: delay, retry_max_delay_seconds: longest } = backoff;
  switch (backoff.backoff_strategy) {
    case 'fixed':
      return Math.min(delay, longest);
    case 'linear':
      return Math.min(delay * attempt, longest);
    case 'exponential_jitter':
      return (0.5 + 0.5 * random()) * Math.min(delay * 2 ** (attempt - 1), longest);
  }
}

/** The deadline of the whole run; null without a timeout or before its first start. */
export function deadlineOf(run: KnownRun, timeoutSeconds: number | null): Instant | null {
  if (timeoutSeconds === null || run.first_started_at === null) return null;
  return fromIso(run.first_started_at) + timeoutSeconds * 1000;
}

/** @throws RefusalError `NOT_FOUND` */
export function requireRun(state: RunState): KnownRun {
  if (!('request' in state)) throw new RefusalError('NOT_FOUND', 'there is no such run');
  return state;
}
