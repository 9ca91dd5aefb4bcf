import { Type } from '@sinclair/typebox';
import { overlapPolicies, retryStarts, runSkipReasons, runTriggers } from '../vocabulary.ts';
import { AnyObject, Id, Nullable, OneOf, Timestamp, closed } from './schema-parts.ts';

const attempt = Type.Integer({ minimum: 1 });

/** The event that triggered a run; carried by it, so that trimming the topic takes nothing from the run. */
const TriggeringEventSchema = closed({
  id: Id,
  topic: Type.String(),
  payload: AnyObject,
  source_agent_id: Id,
  published_at: Timestamp,
});

/** What is fixed when a run is asked for. */
const request = {
  task_id: Id,
  /** The run executes the task as it stood at this revision of `task-<id>`. */
  task_revision: Type.Integer({ minimum: 0 }),
  /** The task's owner. */
  created_by: Id,
  trigger: OneOf(runTriggers),
  /** Nominal time; null for a manual or event run. A retry keeps that of the run it retries. */
  scheduled_for: Nullable(Timestamp),
  priority: Type.Integer({ minimum: 1, maximum: 10 }),
};

const logLine = closed({
  at: Timestamp,
  level: Type.String(),
  message: Type.String(),
  step: Type.String(),
  data: Type.Optional(Type.Unknown()),
});

/**
 * What a run's end says again, so that statistics fold it without looking the run up: whose it was, and
 * when its first attempt began (its execution time counts from there, back-off included).
 */
const ended = { task_id: Id, started_at: Timestamp };

/** What is known of a step when it has ended. */
const stepEnd = {
  /** `<step id>`, or `<step id>[<index>]` for an item of a `for_each`. */
  step: Type.String(),
  status: OneOf(['succeeded', 'skipped', 'failed'] as const),
  result: Type.Unknown(),
  error: Nullable(Type.String()),
  started_at: Timestamp,
  finished_at: Timestamp,
  attempt,
  log: Type.Array(logLine),
};

const StepEndSchema = closed(stepEnd);

/** Events of `run-<id>`: one run, through all its attempts. */
export const runEvents = {
  RunRequested: {
    version: 3,
    schema: closed({
      ...request,
      /** When it may start: nominal time with jitter and snooze, or the time of the request. */
      run_at: Timestamp,
      event: Nullable(TriggeringEventSchema),
      retry_of: Nullable(Id),
      /** Results taken over from the run that this one retries, by step. */
      prior_steps: Type.Array(StepEndSchema),
      /**
       * Where results to begin with are too large to stand here: the run whose they are, and how many. Whoever starts
       * this run first records them in its stream, by RunStepCompleted.
       */
      prior_results: Type.Optional(closed({ run_id: Id, steps: Type.Integer({ minimum: 1 }) })),
      overlap_policy: OneOf(overlapPolicies),
    }),
  },
  RunSkipped: {
    version: 2,
    schema: closed({
      ...request,
      reason: OneOf(runSkipReasons),
      /** The run that stood in the way. */
      because_of: Nullable(Id),
      /** The failed run that this one was to retry; left out where it was to retry none. */
      retry_of: Type.Optional(Id),
    }),
  },
  RunStarted: {
    version: 1,
    schema: closed({ worker: Type.String(), attempt, leased_until: Timestamp }),
  },
  RunStepCompleted: { version: 1, schema: StepEndSchema },
  /**
   * The worker is gone or gave the run back; it goes on elsewhere and no retry is used up. `slot_expired`: the
   * run held a key and did not start; whoever was about to start it now loses the race, so that its slot can
   * be given away.
   */
  RunInterrupted: {
    version: 1,
    schema: closed({
      worker: Type.String(),
      cause: OneOf(['lease_expired', 'drained', 'slot_expired'] as const),
    }),
  },
  RunAttemptFailed: {
    version: 1,
    schema: closed({
      attempt,
      error: Type.String(),
      step: Nullable(Type.String()),
      retry_at: Timestamp,
    }),
  },
  RunSucceeded: {
    version: 1,
    schema: closed({
      ...ended,
      attempt,
      /** The steps that ended since the last RunStepCompleted: usually the last one. */
      steps: Type.Array(StepEndSchema),
      output: AnyObject,
    }),
  },
  RunFailed: {
    version: 1,
    schema: closed({
      ...ended,
      attempt,
      error: Type.String(),
      step: Nullable(Type.String()),
      steps: Type.Array(StepEndSchema),
      output: AnyObject,
    }),
  },
  /**
   * A run that has failed is retried by another; it stays failed. Appended before that one is requested, so that who
   * comes next knows of it: an empty stream of that one after a minute says that it never will be.
   */
  RunRetried: {
    version: 1,
    schema: closed({ run_id: Id, from: OneOf(retryStarts) }),
  },
  RunCancelRequested: { version: 1, schema: closed({}) },
  RunCanceled: {
    version: 2,
    schema: closed({
      attempt: Type.Integer({ minimum: 0 }),
      /** As of a run that failed; left out where it never began. */
      output: Type.Optional(AnyObject),
    }),
  },
  /** It ended long ago, and what came before this is taken out of the log. */
  RunRemoved: {
    version: 2,
    schema: closed({
      /** Left out where it never began. */
      started: Type.Optional(closed({ task_id: Id, at: Timestamp })),
    }),
  },
} as const;
