/** The closed vocabularies of the service. Types, schemas and checks come from these lists. */

export const taskStatuses = ['active', 'paused', 'canceled'] as const;
export type TaskStatus = (typeof taskStatuses)[number];

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

/** States of a run's steps. `reused`: its end was taken over from the run that this one retries. */
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

/** Where a retry of a failed run begins: at the failed step, with the earlier results, or at the start. */
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

/** What a suspended step waits for. */
export const waitKinds = ['timer', 'event', 'approval', 'run', 'callback', 'job'] as const;
export type WaitKind = (typeof waitKinds)[number];

/** What keeps a run from going on: orders, its time, limits, or what its steps wait for. */
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

/** What ended a wait. `stopped`: its run has ended, or another step of its group has failed. */
export const resumedBy = [...waitKinds, 'timeout', 'stopped'] as const;
export type ResumedBy = (typeof resumedBy)[number];

/** An approval nobody decided in time is `expired`, whatever then became of its step; `canceled`: its run ended before. */
export const approvalStates = ['pending', 'approved', 'rejected', 'expired', 'canceled'] as const;
export type ApprovalState = (typeof approvalStates)[number];

/** Whether reads switch to a rebuilt view automatically, or when an operator orders it. */
export const rebuildSwitches = ['auto', 'manual'] as const;
export type RebuildSwitch = (typeof rebuildSwitches)[number];

/** What becomes of a parked key: its event is folded again, or skipped. */
export const parkedOrders = ['retry', 'skip'] as const;
export type ParkedOrder = (typeof parkedOrders)[number];

/** What retention removes from the log, each kind at an age of its own. */
export const retainedKinds = ['runs', 'deliveries', 'sessions', 'refusals', 'requests'] as const;
export type RetainedKind = (typeof retainedKinds)[number];

/** All that retention removes: the payload of an event goes with the last of its runs. */
export const removedKinds = [...retainedKinds, 'payloads'] as const;
export type RemovedKind = (typeof removedKinds)[number];

/** Why a replay was dropped: on request, or because it expired. */
export const replayEnds = ['asked', 'expired'] as const;
export type ReplayEnd = (typeof replayEnds)[number];

/** What an agent's webhook is notified of. */
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

/** Why a worker gets no more jobs: on request, or because it was not heard of for a day. */
export const workerEnds = ['drained', 'silent'] as const;
export type WorkerEnd = (typeof workerEnds)[number];

export const workerStates = ['active', ...workerEnds] as const;
export type WorkerState = (typeof workerStates)[number];

/** What becomes of the runs of an agent that is disabled: started ones finish, or all are canceled. */
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

/** What a run can cause, and what is rejected where its chain is too long. */
export const causedKinds = ['run', 'event'] as const;
export type CausedKind = (typeof causedKinds)[number];

/** The limits and quotas that keep one agent, namespace or address from taking all. */
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
