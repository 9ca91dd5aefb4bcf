import { Type } from '@sinclair/typebox';
import {
  overlapPolicies,
  resumedBy,
  retryStarts,
  runSkipReasons,
  runTriggers,
} from '../vocabulary.ts';
import {
  AnyObject,
  closed,
  event,
  Id,
  Namespace,
  Nullable,
  OneOf,
  Timestamp,
} from './schema-parts.ts';

const attempt = Type.Integer({ minimum: 1 });

/**
 * A copy of the event that triggered a run, because the topic may be trimmed. A payload that is left out is in
 * `payload-<id>`.
 */
const TriggeringEventSchema = closed({
  id: Id,
  topic: Type.String(),
  payload: Type.Optional(AnyObject),
  source_agent_id: Id,
  published_at: Timestamp,
});

/** The fields that are fixed when a run is requested. */
const request = {
  task_id: Id,
  /** The run executes the task at this revision of `task-<id>`. */
  task_revision: Type.Integer({ minimum: 0 }),
  /** The task's owner. */
  created_by: Id,
  trigger: OneOf(runTriggers),
  /** Nominal time; null for a manual or event run. A retry keeps that of the failed run. */
  scheduled_for: Nullable(Timestamp),
  priority: Type.Integer({ minimum: 1, maximum: 10 }),
  /** The task's. */
  namespace: Namespace,
};

/** The values that replace the task's defaults, key by key. Left out if the run has only the defaults. */
const params = AnyObject;

/** The step that waits for this run's end. Left out if there is none. */
const parent = closed({ run_id: Id, step: Type.String() });

const logLine = closed({
  at: Timestamp,
  level: Type.String(),
  message: Type.String(),
  step: Type.String(),
  data: Type.Optional(Type.Unknown()),
});

/**
 * The fields that a run's end repeats, so that statistics need not look up the run. Its execution time counts from
 * `started_at`, the start of its first attempt.
 */
const ended = { task_id: Id, started_at: Timestamp, namespace: Namespace };

/**
 * The SHA-256, in hexadecimal, of the step's arguments as canonical JSON, with secrets masked; see `argumentsHash`.
 * Left out if the arguments were not evaluated.
 */
const arguments_hash = Type.Optional(Type.String());

const StepEndSchema = closed({
  /** `<step id>`, or `<step id>[<index>]` for an item of a `for_each`. */
  step: Type.String(),
  status: OneOf(['succeeded', 'skipped', 'failed'] as const),
  result: Type.Unknown(),
  error: Nullable(Type.String()),
  started_at: Timestamp,
  finished_at: Timestamp,
  attempt,
  /** Without the lines that are recorded already. */
  log: Type.Array(logLine),
  arguments_hash,
  /** The value of `now` in its expressions; left out if it has no expressions. */
  now: Type.Optional(Timestamp),
});

const StepSuspendedSchema = closed({
  /** As in the step's end. */
  step: Type.String(),
  wait_id: Id,
  task_id: Id,
  /** The run's. */
  namespace: Namespace,
  attempt,
  waits_for: Type.Union([
    closed({ kind: Type.Literal('timer'), seconds: Type.Number({ minimum: 0 }) }),
    closed({
      kind: Type.Literal('event'),
      /** A pattern. */
      topic: Type.String(),
      if: Type.Optional(Type.String()),
      /** Events since the run was requested count. If left out, only events after this event count. */
      since: Type.Optional(Type.Literal('run')),
    }),
    closed({
      kind: Type.Literal('approval'),
      message: Type.String(),
      /** Ids of agents, and `scope:<name>`. */
      approvers: Type.Optional(Type.Array(Type.String())),
      on_timeout: OneOf(['fail', 'reject', 'approve'] as const),
    }),
    closed({ kind: Type.Literal('run'), run_id: Id, task_id: Id }),
    closed({
      kind: Type.Literal('callback'),
      /** SHA-256, in hexadecimal, of each token that was issued for this step. */
      token_hashes: Type.Array(Type.String(), { minItems: 1 }),
      /** The tool is still to be called, or its call has not returned yet. */
      calling: Type.Optional(Type.Literal(true)),
    }),
    closed({
      kind: Type.Literal('job'),
      tool: Type.String(),
      arguments: Type.Unknown(),
      /** The job goes only to workers with these labels. */
      labels: Type.Optional(Type.Record(Type.String(), Type.String())),
      /** How many seconds a worker has for the job. */
      timeout_seconds: Type.Number({ exclusiveMinimum: 0 }),
      priority: Type.Integer({ minimum: 1, maximum: 10 }),
      /** After a failed try: the time from which workers may get the job again. */
      not_before: Type.Optional(Timestamp),
    }),
  ]),
  /** The step's start. */
  since: Timestamp,
  /** When the wait ends: a timer's time, or the limit of any other wait. */
  until: Timestamp,
  /** The number of this try of the step; left out for the first. */
  tries: Type.Optional(Type.Integer({ minimum: 1 })),
  /** The run gives up its concurrency key while it waits. */
  release_key: Type.Optional(Type.Literal(true)),
  /** Lines that the tool logged before the wait. */
  log: Type.Optional(Type.Array(logLine)),
  arguments_hash,
});

/** The most waits that a run's removal names. More would not fit into an event. */
export const MAX_REMOVED_WAITS = 10_000;

/** Events of `run-<id>`: one run, through all its attempts. */
export const runEvents = {
  RunRequested: event(
    {
      ...request,
      /** The earliest start: nominal time with jitter and snooze, or the time of the request. */
      run_at: Timestamp,
      event: Nullable(TriggeringEventSchema),
      retry_of: Nullable(Id),
      /** Results of the failed run that this one retries. */
      prior_steps: Type.Array(StepEndSchema),
      /**
       * Replaces `prior_steps` that are too large: the run that has them, how many to reuse, and the step to start
       * with, if a person chose it. The worker copies them by RunStepCompleted.
       */
      prior_results: Type.Optional(
        closed({
          run_id: Id,
          steps: Type.Integer({ minimum: 1 }),
          before: Type.Optional(Type.String()),
        }),
      ),
      overlap_policy: OneOf(overlapPolicies),
      params: Type.Optional(params),
      parent: Type.Optional(parent),
    },
    7,
  ),
  RunSkipped: event(
    {
      ...request,
      reason: OneOf(runSkipReasons),
      /** The run because of which it was skipped. */
      because_of: Nullable(Id),
      /** The failed run that this one was to retry, if any. */
      retry_of: Type.Optional(Id),
      params: Type.Optional(params),
      parent: Type.Optional(parent),
    },
    4,
  ),
  RunStarted: event({ worker: Type.String(), attempt, leased_until: Timestamp }),
  RunStepCompleted: { version: 2, schema: StepEndSchema },
  /** A step waits. It holds no slot and no worker, and any process continues the run once the wait has ended. */
  RunStepSuspended: { version: 2, schema: StepSuspendedSchema },
  /** A wait has ended, once. The step's end follows when a worker continues the run. */
  RunStepResumed: event({
    step: Type.String(),
    wait_id: Id,
    by: closed({
      kind: OneOf(resumedBy),
      /** The id of the event, the run or the worker that ended the wait. */
      id: Type.Optional(Id),
      /** The agent that decided or responded. */
      agent_id: Type.Optional(Id),
    }),
    /**
     * The step's result; left out if it failed. A rejected approval has both a result and an error, and `on_error`
     * decides which one counts.
     */
    result: Type.Optional(Type.Unknown()),
    /** Why the step failed. */
    error: Type.Optional(Type.String()),
    /** Whether retrying the step can help. */
    retryable: Type.Optional(Type.Boolean()),
    log: Type.Optional(Type.Array(logLine)),
  }),
  /** Log lines of a step that has not ended. The event of its end does not repeat them. */
  RunStepProgressed: event({
    step: Type.String(),
    /** The job that wrote them; left out for a step that the service itself executes. */
    wait_id: Type.Optional(Id),
    /** The progress, from 0 to 1. */
    progress: Type.Optional(Type.Number({ minimum: 0, maximum: 1 })),
    log: Type.Optional(Type.Array(logLine)),
  }),
  /** The worker left the run, because all its remaining steps are waiting. */
  RunReleased: event({ worker: Type.String() }),
  /**
   * The run lost its worker, or the worker returned it; it continues elsewhere and uses up no retry. `slot_expired`: the
   * run held a key and did not start. A worker about to start it loses the race, so that its slot can be released.
   */
  RunInterrupted: event({
    worker: Type.String(),
    cause: OneOf(['lease_expired', 'drained', 'slot_expired'] as const),
  }),
  RunAttemptFailed: event({
    attempt,
    error: Type.String(),
    step: Nullable(Type.String()),
    retry_at: Timestamp,
  }),
  RunSucceeded: event(
    {
      ...ended,
      attempt,
      /** Steps that ended since the last RunStepCompleted, usually one. */
      steps: Type.Array(StepEndSchema),
      output: AnyObject,
    },
    3,
  ),
  RunFailed: event(
    {
      ...ended,
      attempt,
      error: Type.String(),
      step: Nullable(Type.String()),
      steps: Type.Array(StepEndSchema),
      output: AnyObject,
    },
    3,
  ),
  /**
   * Another run retries this failed one. Appended before that run is requested. If its stream is still empty after a
   * minute, the retry was lost in a crash.
   */
  RunRetried: event(
    {
      run_id: Id,
      from: OneOf(retryStarts),
      /** The step that the retry starts with; left out if it is the failed one or the first. */
      step: Type.Optional(Type.String()),
    },
    2,
  ),
  RunCancelRequested: event({}),
  RunCanceled: event(
    {
      attempt: Type.Integer({ minimum: 0 }),
      /** As in RunFailed; left out if the run never started. */
      output: Type.Optional(AnyObject),
    },
    2,
  ),
  /** Retention removed everything before this from the log. */
  RunRemoved: event(
    {
      /** Left out if the run never started. */
      started: Type.Optional(closed({ task_id: Id, at: Timestamp })),
      /** Ids of its waits for approvals and callbacks; left out if it had none. */
      waits: Type.Optional(Type.Array(Id, { minItems: 1, maxItems: MAX_REMOVED_WAITS })),
      /** The total size in bytes of the artifacts that its steps referred to; left out if there were none. */
      artifact_bytes: Type.Optional(Type.Integer({ minimum: 1 })),
    },
    3,
  ),
} as const;
