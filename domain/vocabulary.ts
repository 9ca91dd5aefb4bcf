/** The closed vocabularies of the service. Types, schemas and checks come from these lists. */

export const taskStatuses = ['active', 'paused', 'canceled'] as const;
export type TaskStatus = (typeof taskStatuses)[number];

/** The orders of a list of tasks. */
export const taskOrders = ['created', 'title', 'next', 'owner', 'p95', 'health'] as const;
export type TaskOrder = (typeof taskOrders)[number];

export const scheduleKinds = ['cron', 'rrule', 'once', 'event'] as const;
export type ScheduleKind = (typeof scheduleKinds)[number];

export const backoffStrategies = ['exponential_jitter', 'linear', 'fixed'] as const;

export const overlapPolicies = ['allow', 'skip', 'queue', 'cancel_running'] as const;
export type OverlapPolicy = (typeof overlapPolicies)[number];

export const misfirePolicies = ['latest', 'skip', 'all'] as const;
export type MisfirePolicy = (typeof misfirePolicies)[number];

export const runStates = [
  'queued',
  'running',
  'waiting',
  'retrying',
  'succeeded',
  'failed',
  'canceled',
  'skipped',
] as const;
export type RunState = (typeof runStates)[number];

/** States of a run's steps. `reused`: the result comes from the run that this one retries. */
export const stepStates = [
  'pending',
  'running',
  'waiting',
  'succeeded',
  'failed',
  'skipped',
  'reused',
] as const;
export type StepState = (typeof stepStates)[number];

export const runTriggers = ['schedule', 'manual', 'event', 'backfill'] as const;
export type RunTrigger = (typeof runTriggers)[number];

/** The place at which a retry of a failed run begins: at the failed step, with the earlier results, or at the start. */
export const retryStarts = ['failed_step', 'start'] as const;
export type RetryStart = (typeof retryStarts)[number];

/** Which nominal times a backfill runs: those without a run, or all. */
export const backfillScopes = ['missing', 'all'] as const;
export type BackfillScope = (typeof backfillScopes)[number];

/** Why a backfill was canceled: on request, or with its task. */
export const backfillStops = ['request', 'task_canceled'] as const;
export type BackfillStop = (typeof backfillStops)[number];

export const backfillStates = ['running', 'completed', 'canceled'] as const;
export type BackfillStateName = (typeof backfillStates)[number];

/** Why a span of fires was skipped. */
export const spanSkipReasons = ['missed', 'paused', 'snoozed', 'bounds'] as const;
export type SpanSkipReason = (typeof spanSkipReasons)[number];

/** Why a run was skipped. */
export const runSkipReasons = ['overlap', 'duplicate', 'paused', 'snoozed'] as const;
export type RunSkipReason = (typeof runSkipReasons)[number];

/** The states of a run that has not ended. */
export const unfinishedRunStates = ['queued', 'running', 'waiting', 'retrying'] as const;
export type UnfinishedRunState = (typeof unfinishedRunStates)[number];

/** The states of a run that has ended. */
export const endedRunStates: readonly RunState[] = ['succeeded', 'failed', 'canceled', 'skipped'];

/** The conditions for which a suspended step can wait. */
export const waitKinds = ['timer', 'event', 'approval', 'run', 'callback', 'job'] as const;
export type WaitKind = (typeof waitKinds)[number];

/** The obstacles that prevent a run from continuing: orders, its start time, limits, or the waits of its steps. */
export const obstacleKinds = [
  'hold',
  'agent',
  'pause',
  'time',
  'retry',
  'quota',
  'key',
  'slot',
  'worker',
  ...waitKinds,
] as const;
export type ObstacleKind = (typeof obstacleKinds)[number];

/** The causes of the end of a wait. `stopped`: its run has ended, or another step of its group has failed. */
export const resumedBy = [...waitKinds, 'timeout', 'stopped'] as const;
export type ResumedBy = (typeof resumedBy)[number];

/**
 * `expired`: nobody decided the approval in time, regardless of the later result of its step. `canceled`: its run ended
 * first.
 */
export const approvalStates = ['pending', 'approved', 'rejected', 'expired', 'canceled'] as const;
export type ApprovalState = (typeof approvalStates)[number];

/** Whether reads switch to a rebuilt view automatically, or when an operator orders it. */
export const rebuildSwitches = ['auto', 'manual'] as const;
export type RebuildSwitch = (typeof rebuildSwitches)[number];

/** The orders for a parked key: its event is folded again, or skipped. */
export const parkedOrders = ['retry', 'skip'] as const;
export type ParkedOrder = (typeof parkedOrders)[number];

/** The kinds of records that retention removes from the log, each at its own age. */
export const retainedKinds = ['runs', 'deliveries', 'sessions', 'refusals', 'requests'] as const;
export type RetainedKind = (typeof retainedKinds)[number];

/** All kinds of records that retention removes. The payload of an event is removed with the last of its runs. */
export const removedKinds = [...retainedKinds, 'payloads'] as const;
export type RemovedKind = (typeof removedKinds)[number];

/** Why a replay was dropped: on request, or because it expired. */
export const replayEnds = ['asked', 'expired'] as const;
export type ReplayEnd = (typeof replayEnds)[number];

/** The kinds of events of which an agent's webhook is notified. */
export const webhookTypes = ['run.succeeded', 'run.failed', 'task.paused', 'webhook.test'] as const;
export type WebhookType = (typeof webhookTypes)[number];

export const webhookStates = ['pending', 'delivered', 'failed'] as const;
export type WebhookStateName = (typeof webhookStates)[number];

/**
 * Why a delivery is not retried: a day has passed, the receiver answered 410 Gone, requests to its address are
 * forbidden, or the agent no longer has a webhook.
 */
export const webhookEnds = ['expired', 'gone', 'refused', 'no_url'] as const;
export type WebhookEnd = (typeof webhookEnds)[number];

/** Why a worker gets no more jobs: on request, or because it was silent for a day. */
export const workerEnds = ['drained', 'silent'] as const;
export type WorkerEnd = (typeof workerEnds)[number];

export const workerStates = ['active', ...workerEnds] as const;
export type WorkerState = (typeof workerStates)[number];

/** The choices for the runs of a disabled agent: started runs finish, or all runs are canceled. */
export const disabledRuns = ['finish', 'cancel'] as const;
export type DisabledRuns = (typeof disabledRuns)[number];

/** Why a task is paused. The last two: its agent lost the scope `tasks:write`, or was removed. */
export const pauseReasons = ['request', 'failures', 'scope_lost', 'agent_removed'] as const;
export type PauseReason = (typeof pauseReasons)[number];

/** Why the service paused a task whose agent may no longer have it. */
export const pauseCauses = ['scope_lost', 'agent_removed'] as const;
export type PauseCause = (typeof pauseCauses)[number];

/** The result of a command, as the audit shows it. */
export const auditOutcomes = ['done', 'failed', 'refused'] as const;
export type AuditOutcome = (typeof auditOutcomes)[number];

/** The effects that a run can cause. They are rejected if its chain is too long. */
export const causedKinds = ['run', 'event'] as const;
export type CausedKind = (typeof causedKinds)[number];

/** The limits and quotas that prevent one agent, namespace or address from using all resources. */
export const sharedLimits = [
  'address',
  'unauthenticated',
  'live_streams',
  'waiting_runs_agent',
  'waiting_runs_namespace',
  'tasks',
  'agents',
  'topics',
  'events',
  'artifact_bytes',
  'runs_per_minute',
  'payload_bytes_per_minute',
] as const;
export type SharedLimit = (typeof sharedLimits)[number];
