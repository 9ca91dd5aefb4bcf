import { Type, type Static, type TSchema } from '@sinclair/typebox';
import { AnyObject, Nullable, OneOf, closed } from '../../domain/events/schema-parts.ts';
import {
  obstacleKinds,
  resumedBy,
  runSkipReasons,
  runStates,
  runTriggers,
  stepStates,
  waitKinds,
} from '../../domain/vocabulary.ts';
import { count, done, id, listedPayload, pageOf, time, namespace } from './response-schemas.ts';

/** Responses about runs and their statistics. */

const params = (schema: TSchema) =>
  Type.Union([schema, Type.Null()], {
    description:
      'the default params of the task, with the values that the run replaces; null: the task cannot be read',
  });

/** The event that triggered a run. */
const triggeringEvent = (payload: TSchema) =>
  Type.Union(
    [
      closed({
        id,
        topic: Type.String(),
        payload: Type.Union([payload, Type.Null()], {
          description: 'null: the log cannot be read',
        }),
        source_agent_id: id,
        published_at: time,
      }),
      Type.Null(),
    ],
    { description: 'the event that triggered the run; null: none did' },
  );

/** A waiting step. Its `kind` determines which of the last fields are present. */
const RunWait = Type.Object(
  {
    id,
    step: Type.String(),
    kind: OneOf(waitKinds),
    since: time,
    until: time,
    resumed_by: Nullable(OneOf(resumedBy)),
    topic: Type.Optional(Type.String()),
    if: Type.Optional(Nullable(Type.String())),
    message: Type.Optional(Type.String()),
    approvers: Type.Optional(Nullable(Type.Array(Type.String()))),
    run_id: Type.Optional(id),
    task_id: Type.Optional(id),
    tool: Type.Optional(Type.String()),
    progress: Type.Optional(Type.Number({ minimum: 0, maximum: 1 })),
    reason: Type.Optional(
      Type.String({ description: 'why a job has no worker yet, or which one does it' }),
    ),
  },
  { title: 'RunWait', additionalProperties: false },
);

const shown = {
  id,
  namespace,
  task_id: id,
  created_by: id,
  lease_owner: Nullable(Type.String()),
  leased_until: Nullable(time),
  started_at: Nullable(time),
  finished_at: Nullable(time),
  success: Nullable(Type.Boolean()),
  error: Nullable(Type.String()),
  attempt: count,
  output: Nullable(AnyObject),
  created_at: time,
  state: OneOf(runStates),
  trigger: OneOf(runTriggers),
  scheduled_for: Nullable(time),
  run_at: time,
  queued_at: time,
  priority: Type.Integer({ minimum: 1, maximum: 10 }),
  task_revision: count,
  retry_of: Nullable(id),
  depth: count,
  retried_by: Nullable(id),
  parent_run_id: Nullable(id),
  skip_reason: Nullable(OneOf(runSkipReasons)),
  cancel_requested: Type.Boolean(),
  waits: Type.Array(RunWait),
};

const Attempt = Type.Object(
  {
    attempt: Type.Integer({ minimum: 1 }),
    worker: Type.String(),
    started_at: time,
    finished_at: Nullable(time),
    outcome: Nullable(OneOf(['succeeded', 'failed', 'canceled'] as const)),
    error: Nullable(Type.String()),
    step: Nullable(Type.String({ description: 'the step that failed' })),
  },
  { title: 'RunAttempt', additionalProperties: false },
);

const Step = Type.Object(
  {
    step: Type.String(),
    status: OneOf(['succeeded', 'skipped', 'failed'] as const),
    result: Type.Unknown(),
    error: Nullable(Type.String()),
    started_at: time,
    finished_at: time,
    attempt: Type.Integer({ minimum: 1 }),
    arguments_hash: Type.Optional(Type.String()),
    now: Type.Optional(time),
  },
  { title: 'RunStep', additionalProperties: false },
);

const PlannedStep = Type.Object(
  {
    step: Type.String(),
    state: OneOf(stepStates),
    uses: Nullable(Type.String()),
    group: Nullable(Type.String()),
    needs: Type.Array(Type.String()),
    arguments_hash: Type.Optional(Type.String()),
  },
  { title: 'PlannedStep', additionalProperties: false },
);

const LogLine = Type.Object(
  {
    at: time,
    level: Type.String(),
    message: Type.String(),
    step: Type.String(),
    data: Type.Optional(Type.Unknown()),
  },
  { title: 'RunLogLine', additionalProperties: false },
);

export const Run = Type.Object(
  {
    ...shown,
    params: params(AnyObject),
    event: triggeringEvent(AnyObject),
    attempts: Type.Array(Attempt),
    steps: Type.Array(Step),
    plan: Nullable(
      Type.Array(PlannedStep, {
        description:
          'all steps of the pipeline in order, with their state; null: the task cannot be read',
      }),
    ),
    log: Type.Array(LogLine),
  },
  { title: 'Run', additionalProperties: false },
);
export type Run = Static<typeof Run>;

/** Why a run ran, what it waits for, and how it compares with other runs of its task. */
export const RunExplanation = Type.Object(
  {
    run_id: id,
    state: OneOf(runStates),
    requested: closed({
      at: time,
      by: Type.String({ description: 'the agent that requested it, or `service`' }),
      by_name: Nullable(Type.String()),
      reason: Nullable(
        Type.String({ description: 'the reason that the requester gave; null: none' }),
      ),
      text: Type.String({ description: 'why it ran, as a sentence' }),
    }),
    waits_for: Type.Array(
      closed({
        kind: OneOf(obstacleKinds),
        text: Type.String({ description: 'what it waits for, as a sentence' }),
        since: Nullable(time),
        until: Nullable(time),
        by: Nullable(Type.String({ description: 'the agent that ordered it' })),
        by_name: Nullable(Type.String({ description: 'its name' })),
        reason: Nullable(Type.String({ description: 'why it was ordered, or why it lasts' })),
        run_ids: Type.Array(id, { description: 'the runs that it waits for' }),
      }),
      {
        description: 'what it waits for, the first obstacle first; empty if it waits for nothing',
      },
    ),
    previous_run_id: Nullable(id),
    next_run_id: Nullable(id),
    step_times: Type.Array(
      closed({
        step: Type.String(),
        took_seconds: Nullable(Type.Number({ minimum: 0 })),
        measured: count,
        p50_seconds: Nullable(Type.Number({ minimum: 0 })),
        p95_seconds: Nullable(Type.Number({ minimum: 0 })),
        slow: Type.Boolean(),
      }),
      { description: 'how long its steps took, compared with the 50 earlier runs of its task' },
    ),
    input: Type.Union(
      [closed({ step: Type.String(), value: Type.Unknown(), exact: Type.Boolean() }), Type.Null()],
      {
        description:
          'arguments of the `step` that the query names, with secrets masked; null: unknown, or the scope `tasks:read` is missing',
      },
    ),
  },
  { title: 'RunExplanation', additionalProperties: false },
);
export type RunExplanation = Static<typeof RunExplanation>;

/** The content of an artifact. */
export const ArtifactContent = Type.Unknown({ description: 'the result, as JSON' });

export const LatestRun = Nullable(Run);
export type LatestRun = Static<typeof LatestRun>;

export const RunItem = Type.Object(
  { ...shown, params: params(listedPayload), event: triggeringEvent(listedPayload) },
  { title: 'RunItem', additionalProperties: false },
);
export type RunItem = Static<typeof RunItem>;

export const RunPage = pageOf(
  'RunPage',
  RunItem,
  Type.Union([count, Type.Null()], { description: 'how many match; null for a search' }),
);
export type RunPage = Static<typeof RunPage>;

export const RunCanceled = done({ run_id: id, old_state: OneOf(runStates) });
export type RunCanceled = Static<typeof RunCanceled>;

const retry = {
  run_id: id,
  retry_of: id,
  task_id: id,
  skip_reason: Type.Optional(Type.Literal('overlap')),
};

export const RunRetried = done(retry);
export type RunRetried = Static<typeof RunRetried>;

export const RunsRedriven = done({
  dry_run: Type.Boolean(),
  count,
  passed_over: closed({
    succeeded: count,
    under_way: count,
    task_canceled: count,
    not_owned: count,
    not_failed: count,
    invalid_params: count,
  }),
  left: count,
  next_cursor: Nullable(Type.String()),
  runs: Type.Array(closed(retry)),
});
export type RunsRedriven = Static<typeof RunsRedriven>;

export const RunsCanceled = done({
  dry_run: Type.Boolean(),
  count,
  passed_over: closed({ ended: count }),
  left: count,
  next_cursor: Nullable(Type.String()),
  runs: Type.Array(closed({ run_id: id, task_id: id, old_state: OneOf(runStates) })),
});
export type RunsCanceled = Static<typeof RunsCanceled>;
