import { fromIso, toIso, type Instant } from '../clock.ts';
import { Refusal } from '../errors.ts';
import type { DataOf, RunEvent, StepEnd } from '../events/catalogue.ts';
import type { EventPlace, Fold } from '../handle.ts';
import type { JsonObject } from '../json.ts';
import { outputSoFar } from './run-output.ts';
import { noSteps, withEnds, type StepEnds } from './run-steps.ts';
import type { RetryStart, RunState as StateName } from '../vocabulary.ts';

/**
 * A run: one execution of a task, with one id through all its attempts.
 *
 *   none ──RunRequested──► queued ──RunStarted──► running ──RunSucceeded──► succeeded
 *   none ──RunSkipped──► skipped     ▲  ▲            │ │ │
 *   none ──Abandoned──► abandoned    │  └─RunInterrupted┘ │ └──RunFailed──► failed
 *                                    │                  └─RunAttemptFailed─► retrying
 *                                    └──(RunStarted, once retry_at has come)──┘
 *   queued, running, retrying ──RunCanceled──► canceled    (running: asked by RunCancelRequested first)
 *   queued, retrying ──RunFailed──► failed                 (its time was over while it waited to go on)
 *   queued, retrying ──RunSkipped──► skipped               (its task was paused before it began)
 *   failed ──RunRetried──► failed                          (another run goes on from it)
 *   any end ──RunRemoved──► removed                        (its time in the log is over)
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
  /** Steps that have ended, in the order of their ends; those before a retry included. See `endsOf`. */
  readonly steps: StepEnds;
  /** How often a worker went away in the midst of the present attempt. */
  readonly interruptions: number;
  readonly cancel_requested: boolean;
  readonly queued_at: string;
  /** The run that retries this one, the latest; null: none was asked for. */
  readonly retried_by: string | null;
  readonly revision: number;
}

type Request = Pick<
  DataOf<'RunRequested'>,
  'task_id' | 'task_revision' | 'created_by' | 'trigger' | 'scheduled_for' | 'priority'
> & {
  readonly event: DataOf<'RunRequested'>['event'];
  readonly retry_of: string | null;
  /** Whose results it begins with that its request does not hold; see `takeOverResults`. */
  readonly prior_results: PriorResults | null;
};

type PriorResults = NonNullable<DataOf<'RunRequested'>['prior_results']>;

/** A worker that goes away this often within one attempt makes it a failed one. */
export const MOST_INTERRUPTIONS = 5;

export const runFold: Fold<RunState, RunEvent> = { initial: { state: 'none' }, evolve: evolveRun };

function evolveRun(state: RunState, event: RunEvent, at: EventPlace): RunState {
  switch (event.type) {
    case 'RunRequested':
      return requested(event.data, at);
    case 'RunSkipped':
      return 'request' in state
        ? { ...state, state: 'skipped', revision: at.revision }
        : {
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
  data: Omit<Request, 'event' | 'retry_of' | 'prior_results'> & {
    readonly run_at: string;
    readonly event?: Request['event'];
    readonly retry_of?: string | null;
    readonly prior_steps?: readonly StepEnd[];
    readonly prior_results?: PriorResults;
  },
  at: EventPlace,
): KnownRun {
  const { task_id, task_revision, created_by, trigger, scheduled_for, priority } = data;
  const pinned = { task_id, task_revision, created_by, trigger, scheduled_for, priority };
  return {
    state: 'queued',
    request: {
      ...pinned,
      event: data.event ?? null,
      retry_of: data.retry_of ?? null,
      prior_results: data.prior_results ?? null,
    },
    attempt: 0,
    lease_owner: null,
    leased_until: null,
    first_started_at: null,
    run_at: data.run_at,
    steps: withEnds(noSteps, data.prior_steps ?? []),
    interruptions: 0,
    cancel_requested: false,
    queued_at: at.metadata.occurredAt,
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
  const free = { ...state, revision, lease_owner: null, leased_until: null };
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
      return { ...state, steps: withEnds(state.steps, [event.data]), revision };
    case 'RunInterrupted':
      return {
        ...free,
        // What loses its slot in a back-off is still followed by the next attempt.
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

/** Whether a run has ended, for ever. */
export function hasEnded(state: RunState): boolean {
  return ['succeeded', 'failed', 'canceled', 'skipped', 'abandoned', 'removed'].includes(
    state.state,
  );
}

/**
 * Asks for the end of a run: one that no worker has ends at once, a running one is told to stop. Nothing to do
 * when it was asked before, or was canceled.
 * @param payload of the task at the revision that the run is pinned to; null where no step of it has ended
 * @throws Refusal `STATE_CONFLICT` when it has ended otherwise
 */
export function cancelRun(state: RunState, payload: JsonObject | null): readonly RunEvent[] {
  const run = requireRun(state);
  if (run.state === 'canceled') return [];
  if (hasEnded(run)) {
    throw new Refusal('STATE_CONFLICT', `the run has ${run.state}`, { state: run.state });
  }
  if (run.state !== 'running') return [canceled(run, payload)];
  return run.cancel_requested ? [] : [{ type: 'RunCancelRequested', data: {} }];
}

/** The end of a run that nobody executes. @param payload as of {@link cancelRun} */
export function canceled(
  run: Pick<KnownRun, 'attempt' | 'steps'>,
  payload: JsonObject | null,
): RunEvent {
  const { attempt } = run;
  if (attempt === 0 || payload === null) return { type: 'RunCanceled', data: { attempt } };
  return { type: 'RunCanceled', data: { attempt, output: outputSoFar(run, payload) } };
}

/**
 * Notes that a run is to be retried by another. It may be retried again: each command asks for a run of its own.
 * @throws Refusal `STATE_CONFLICT` when it has not failed
 */
export function retryRun(state: RunState, by: string, from: RetryStart): readonly RunEvent[] {
  const run = requireRun(state);
  if (run.state !== 'failed') {
    const is = hasEnded(run) ? `has ${ended[run.state] ?? run.state}` : `is ${run.state}`;
    throw new Refusal('STATE_CONFLICT', `only a failed run can be retried; this one ${is}`, {
      state: run.state,
    });
  }
  return [{ type: 'RunRetried', data: { run_id: by, from } }];
}

/** How it is said of some states that a run has reached them. */
const ended: Readonly<Partial<Record<StateName, string>>> = {
  canceled: 'been canceled',
  skipped: 'been skipped',
};

/** A worker takes the run. An interrupted attempt goes on as itself, a failed one is followed by the next. */
export function startRun(
  run: Pick<KnownRun, 'attempt' | 'state' | 'interruptions'>,
  worker: string,
  leasedUntil: Instant,
): Extract<RunEvent, { readonly type: 'RunStarted' }> {
  const goesOn = run.state === 'queued' && run.attempt > 0;
  const attempt = goesOn ? run.attempt : run.attempt + 1;
  return { type: 'RunStarted', data: { worker, attempt, leased_until: toIso(leasedUntil) } };
}

/**
 * The worker of a running run is gone. It goes on elsewhere and uses up no retry, up to
 * {@link MOST_INTERRUPTIONS} times; once more is a failed attempt. One that was to be canceled is canceled.
 *
 * @param retryAt when the next attempt may start, should this one count as failed; null: none is left
 * @param payload of the task at the revision that the run is pinned to
 */
export function takeOver(
  state: RunState,
  now: Instant,
  retryAt: Instant | null,
  payload: JsonObject,
): readonly RunEvent[] {
  const run = requireRun(state);
  if (run.state !== 'running' || run.lease_owner === null) return [];
  if (run.cancel_requested) return [canceled(run, payload)];
  if (run.interruptions < MOST_INTERRUPTIONS) {
    const data = { worker: run.lease_owner, cause: 'lease_expired' as const };
    return [{ type: 'RunInterrupted', data }];
  }
  const error = `its worker went away ${run.interruptions + 1} times`;
  const { attempt } = run;
  if (retryAt !== null) {
    const retry_at = toIso(retryAt);
    return [{ type: 'RunAttemptFailed', data: { attempt, error, step: null, retry_at } }];
  }
  const started_at = run.first_started_at ?? toIso(now);
  const data = { task_id: run.request.task_id, started_at, attempt, error, step: null, steps: [] };
  return [{ type: 'RunFailed', data: { ...data, output: outputSoFar(run, payload) } }];
}

/**
 * The time of a run is over that nobody executes: it has failed, however many attempts are left. Nothing where it is
 * executed, which ends by itself then, has never been, or has ended.
 *
 * @param timeoutSeconds of the task, all of which have passed since the first start
 * @param payload of the task at the revision that the run is pinned to
 */
export function timeOut(
  state: RunState,
  timeoutSeconds: number,
  payload: JsonObject,
): readonly RunEvent[] {
  if (state.state !== 'queued' && state.state !== 'retrying') return [];
  const { attempt, first_started_at: started_at, request } = state;
  if (started_at === null) return [];
  if (state.cancel_requested) return [canceled(state, payload)];
  const error = overTime(timeoutSeconds);
  const data = { task_id: request.task_id, started_at, attempt, error, step: null, steps: [] };
  return [{ type: 'RunFailed', data: { ...data, output: outputSoFar(state, payload) } }];
}

/** Why a run has failed whose time is over. */
export function overTime(timeoutSeconds: number): string {
  return `the run was not over after ${timeoutSeconds} s`;
}

/**
 * When a run with this back-off may be tried again after its n-th attempt failed; null when no retry is left, or the
 * run must be over by then.
 *
 * @param atLeastMs how long whoever was called asks to be left alone
 * @param deadline of the run as a whole; null: none
 */
export function retryTime(
  attempt: number,
  backoff: {
    readonly max_retries: number;
    readonly backoff_strategy: 'exponential_jitter' | 'linear' | 'fixed';
    readonly retry_delay_seconds: number;
    readonly retry_max_delay_seconds: number;
  },
  now: Instant,
  random: () => number,
  atLeastMs = 0,
  deadline: Instant | null = null,
): Instant | null {
  if (attempt > backoff.max_retries) return null;
  const at = now + Math.max(atLeastMs, delayAfter(attempt, backoff, random) * 1000);
  return deadline !== null && at >= deadline ? null : at;
}

/** Seconds. `retry_max_delay_seconds` is the longest of them for every strategy. */
function delayAfter(
  attempt: number,
  backoff: {
    readonly backoff_strategy: 'exponential_jitter' | 'linear' | 'fixed';
    readonly retry_delay_seconds: number;
    readonly retry_max_delay_seconds: number;
  },
  random: () => number,
): number {
  const { retry_delay_seconds: d, retry_max_delay_seconds: most } = backoff;
  switch (backoff.backoff_strategy) {
    case 'fixed':
      return Math.min(d, most);
    case 'linear':
      return Math.min(d * attempt, most);
    case 'exponential_jitter':
      return (0.5 + 0.5 * random()) * Math.min(d * 2 ** (attempt - 1), most);
  }
}

/** When the run as a whole must be over; null without a limit or before its first start. */
export function deadlineOf(run: KnownRun, timeoutSeconds: number | null): Instant | null {
  if (timeoutSeconds === null || run.first_started_at === null) return null;
  return fromIso(run.first_started_at) + timeoutSeconds * 1000;
}

/** @throws Refusal `NOT_FOUND` */
export function requireRun(state: RunState): KnownRun {
  if (!('request' in state)) throw new Refusal('NOT_FOUND', 'there is no such run');
  return state;
}
