/** The closed vocabularies of the service. Types, schemas and checks all come from these lists. */

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
  'retrying',
  'succeeded',
  'failed',
  'canceled',
  'skipped',
] as const;
export type RunState = (typeof runStates)[number];

export const runTriggers = ['schedule', 'manual', 'event', 'backfill'] as const;
export type RunTrigger = (typeof runTriggers)[number];

/** Where a retry of a failed run begins: at the step that failed, with the earlier results, or anew. */
export const retryStarts = ['failed_step', 'start'] as const;
export type RetryStart = (typeof retryStarts)[number];

/** Which nominal times a backfill runs: those without a run, or all. */
export const backfillScopes = ['missing', 'all'] as const;
export type BackfillScope = (typeof backfillScopes)[number];

/** Why a backfill was canceled: somebody asked for it, or its task was canceled. */
export const backfillStops = ['request', 'task_canceled'] as const;
export type BackfillStop = (typeof backfillStops)[number];

export const backfillStates = ['running', 'completed', 'canceled'] as const;
export type BackfillStateName = (typeof backfillStates)[number];

/** Why a span of fires did not run. */
export const spanSkipReasons = ['missed', 'paused', 'snoozed', 'bounds'] as const;
export type SpanSkipReason = (typeof spanSkipReasons)[number];

/** Why a single run did not run. */
export const runSkipReasons = ['overlap', 'duplicate', 'paused', 'snoozed'] as const;
export type RunSkipReason = (typeof runSkipReasons)[number];

/** The states in which a run has ended, for ever. */
export const endedRunStates: readonly RunState[] = ['succeeded', 'failed', 'canceled', 'skipped'];

/** Whether reads go to a rebuilt view by themselves, or when an operator says so. */
export const rebuildSwitches = ['auto', 'manual'] as const;
export type RebuildSwitch = (typeof rebuildSwitches)[number];

/** What becomes of a key that is held back: its event is folded after all, or left out. */
export const parkedOrders = ['retry', 'skip'] as const;
export type ParkedOrder = (typeof parkedOrders)[number];

/** What leaves the log after its time, where the settings say so. */
export const retainedKinds = ['runs', 'deliveries', 'sessions', 'refusals', 'requests'] as const;
export type RetainedKind = (typeof retainedKinds)[number];

/** Why views as of a moment were thrown away: somebody asked for it, or their time was over. */
export const replayEnds = ['asked', 'expired'] as const;
export type ReplayEnd = (typeof replayEnds)[number];

/** What an agent's webhook is told of. */
export const webhookTypes = ['run.succeeded', 'run.failed', 'task.paused', 'webhook.test'] as const;
export type WebhookType = (typeof webhookTypes)[number];

export const webhookStates = ['pending', 'delivered', 'failed'] as const;
export type WebhookStateName = (typeof webhookStates)[number];

/**
 * Why a delivery is not tried again: a day is over, the receiver said that it is gone for good, requests to its address
 * are not made, or the agent has no webhook any more.
 */
export const webhookEnds = ['expired', 'gone', 'refused', 'no_url'] as const;
export type WebhookEnd = (typeof webhookEnds)[number];

/** What came of a command, as the audit shows it. */
export const auditOutcomes = ['done', 'failed', 'refused'] as const;
export type AuditOutcome = (typeof auditOutcomes)[number];
