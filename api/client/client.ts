import type { Static } from '@sinclair/typebox';
import type * as Audit from '../schemas/answer-schemas-audit.ts';
import type * as Agents from '../schemas/answer-schemas-agents.ts';
import type * as Events from '../schemas/answer-schemas-events.ts';
import type { DueQuery, DueTaskPage } from '../schemas/due-schemas.ts';
import type { HealthReport, Readiness } from '../schemas/answer-schemas-health.ts';
import type {
  Held,
  HoldBody,
  Operations,
  ReleaseBody,
  Released,
} from '../schemas/answer-schemas-operations.ts';
import type * as Views from '../schemas/answer-schemas-projections.ts';
import type * as Replays from '../schemas/answer-schemas-replays.ts';
import type * as Runs from '../schemas/answer-schemas-runs.ts';
import type * as Schedules from '../schemas/answer-schemas-schedules.ts';
import type * as Tasks from '../schemas/answer-schemas-tasks.ts';
import type * as Webhooks from '../schemas/answer-schemas-webhooks.ts';
import {
  ClientConnection,
  type Answered,
  type Asking,
  type CallOptions,
  type ClientOptions,
  type Watching,
} from './client-connection.ts';
import type * as Looked from '../schemas/audit-schemas.ts';
import type { EventsExportQuery, RunsExportQuery } from '../schemas/export-schemas.ts';
import type { RedriveRuns, RetryQuery } from '../schemas/run-retry-schemas.ts';
import type * as Spans from '../schemas/schedule-schemas.ts';
import type * as Taken from '../schemas/schemas.ts';
import type { DeliveryQuery } from '../schemas/webhook-schemas.ts';

export { ApiError } from './client-connection.ts';
export type {
  Answered,
  Asking,
  CallOptions,
  ClientOptions,
  Credentials,
  KeptTokens,
  Watching,
} from './client-connection.ts';
export type { ServerSentEvent } from './server-sent-events.ts';
export type { Agent } from '../schemas/answer-schemas-agents.ts';
export type { RecentEvents, Topics } from '../schemas/answer-schemas-events.ts';
export type { HealthReport } from '../schemas/answer-schemas-health.ts';
export type { Backfill, ConcurrencyKey, Explanation } from '../schemas/answer-schemas-schedules.ts';
export type {
  Run,
  RunItem,
  RunPage,
  StatisticsSummary,
  TaskStatistics,
} from '../schemas/answer-schemas-runs.ts';
export type { Task, TaskItem, TaskPage } from '../schemas/answer-schemas-tasks.ts';
export type { WebhookDelivery } from '../schemas/answer-schemas-webhooks.ts';
export type { CreateTask, PublishEvent, UpdateTask } from '../schemas/schemas.ts';

/** What a client can ask for; every method throws {@link ApiError} where the service refuses. */
export type Client = ReturnType<typeof createClient>;

/**
 * A client of the service for programs in TypeScript and JavaScript, over `fetch`. Its types are those of the schemas
 * by which the service checks what it takes, and its tests what it answers.
 */
export function createClient(options: ClientOptions) {
  const connection = new ClientConnection(options);
  const ask = <T>(asking: Asking): Promise<Answered<T>> => connection.call<T>(asking);
  return {
    /** For what has no method here. */
    request: ask,
    /** The messages of a live path: `/runs/live`, `/tasks/{id}/live`, `/audit/live`. */
    live: (watching: Watching) => connection.live(watching),
    /** Rows as text, as they come: with `end_mark`, a last one says that they are all. */
    exports: exports(connection),
    /** The access token as which it calls; null where it has none. */
    token: () => connection.token(),
    tokens: tokens(ask),
    agents: agents(ask),
    tasks: tasks(ask),
    schedules: schedules(ask),
    backfills: backfills(ask),
    runs: runs(ask),
    statistics: statistics(ask),
    events: events(ask),
    audit: audit(ask),
    webhooks: webhooks(ask),
    projections: projections(ask),
    replays: replays(ask),
    operations: operations(ask),
    health: health(ask),
  };
}

type Ask = <T>(asking: Asking) => Promise<Answered<T>>;

/** Parameters with a default may be left out, as all that are undefined. */
type Query<T> = { readonly [Name in keyof T]?: T[Name] | undefined };
interface Read {
  /** A position of the log: the answer has seen at least that much. */
  readonly after?: string | undefined;
}
interface Page {
  readonly limit: number;
  readonly offset: number;
  readonly cursor: string;
}
interface ReadAsOf extends Read {
  /** A position or a time: how it was then. */
  readonly as_of?: string | undefined;
}

/** A path with ids in it. @throws RangeError for what no part of a path can be: URLs drop it, and mean another one */
const at = (strings: TemplateStringsArray, ...ids: readonly string[]): string => {
  const odd = ids.find((id) => ['', '.', '..'].includes(id));
  if (odd !== undefined) throw new RangeError(`"${odd}" is no id`);
  return String.raw({ raw: strings }, ...ids.map(encodeURIComponent));
};

/** Answers of 503 are thrown, as all that say that something is wrong. */
const health = (ask: Ask) => ({
  report: () => ask<HealthReport>({ method: 'GET', path: '/health', open: true }),
  ready: () => ask<Readiness>({ method: 'GET', path: '/health/ready', open: true }),
});

const tokens = (ask: Ask) => ({
  get: (body: Taken.TokenRequest) =>
    ask<Agents.Tokens>({ method: 'POST', path: '/agents/auth/token', body, open: true }),
  refresh: (body: Taken.RefreshRequest) =>
    ask<Agents.Tokens>({ method: 'POST', path: '/agents/auth/refresh', body, open: true }),
  revoke: (body: Taken.RevokeRequest) =>
    ask<Agents.Revoked>({ method: 'POST', path: '/agents/auth/revoke', body, open: true }),
});

const agents = (ask: Ask) => ({
  create: (body: Taken.CreateAgent, call: CallOptions = {}) =>
    ask<Agents.Agent>({ ...call, method: 'POST', path: '/agents', body }),
  list: (query: Query<Taken.AgentQuery> = {}, call: CallOptions = {}) =>
    ask<Agents.AgentList>({ ...call, method: 'GET', path: '/agents', query }),
  get: (id: string, query: ReadAsOf = {}, call: CallOptions = {}) =>
    ask<Agents.Agent>({ ...call, method: 'GET', path: at`/agents/${id}`, query }),
  update: (id: string, body: Taken.UpdateAgent, call: CallOptions = {}) =>
    ask<Agents.Agent>({ ...call, method: 'PUT', path: at`/agents/${id}`, body }),
  remove: (id: string, query: Query<Taken.RemoveAgentQuery> = {}, call: CallOptions = {}) =>
    ask<Agents.AgentRemoved>({ ...call, method: 'DELETE', path: at`/agents/${id}`, query }),
  setCredentials: (id: string, body: Taken.SetCredentials = {}, call: CallOptions = {}) =>
    ask<Agents.Credentials>({ ...call, method: 'POST', path: at`/agents/${id}/credentials`, body }),
  history: (id: string, query: Query<Looked.HistoryQuery> = {}, call: CallOptions = {}) =>
    ask<Audit.History>({ ...call, method: 'GET', path: at`/agents/${id}/history`, query }),
});

const tasks = (ask: Ask) => ({
  create: (body: Taken.CreateTask, call: CallOptions = {}) =>
    ask<Tasks.Task>({ ...call, method: 'POST', path: '/tasks', body }),
  list: (query: Query<Taken.TaskQuery> = {}, call: CallOptions = {}) =>
    ask<Tasks.TaskPage>({ ...call, method: 'GET', path: '/tasks', query }),
  due: (query: Query<DueQuery> = {}, call: CallOptions = {}) =>
    ask<DueTaskPage>({ ...call, method: 'GET', path: '/tasks/due', query }),
  get: (id: string, query: ReadAsOf = {}, call: CallOptions = {}) =>
    ask<Tasks.Task>({ ...call, method: 'GET', path: at`/tasks/${id}`, query }),
  update: (id: string, body: Taken.UpdateTask, call: CallOptions = {}) =>
    ask<Tasks.Task>({ ...call, method: 'PUT', path: at`/tasks/${id}`, body }),
  runNow: (id: string, query: Query<Taken.RunNowQuery> = {}, call: CallOptions = {}) =>
    ask<Tasks.RunRequested>({ ...call, method: 'POST', path: at`/tasks/${id}/run_now`, query }),
  snooze: (id: string, body: Taken.SnoozeTask, call: CallOptions = {}) =>
    ask<Tasks.Snoozed>({ ...call, method: 'POST', path: at`/tasks/${id}/snooze`, body }),
  pause: (id: string, call: CallOptions = {}) =>
    ask<Tasks.StatusChanged>({ ...call, method: 'POST', path: at`/tasks/${id}/pause` }),
  resume: (id: string, query: Query<Taken.ResumeQuery> = {}, call: CallOptions = {}) =>
    ask<Tasks.StatusChanged>({ ...call, method: 'POST', path: at`/tasks/${id}/resume`, query }),
  cancel: (id: string, call: CallOptions = {}) =>
    ask<Tasks.TaskCanceled>({ ...call, method: 'POST', path: at`/tasks/${id}/cancel` }),
  explain: (id: string, query: Spans.ExplainQuery, call: CallOptions = {}) =>
    ask<Schedules.Explanation>({ ...call, method: 'GET', path: at`/tasks/${id}/explain`, query }),
  history: (id: string, query: Query<Looked.HistoryQuery> = {}, call: CallOptions = {}) =>
    ask<Audit.History>({ ...call, method: 'GET', path: at`/tasks/${id}/history`, query }),
});

const schedules = (ask: Ask) => ({
  preview: (body: Spans.PreviewSchedule, call: CallOptions = {}) =>
    ask<Schedules.SchedulePreview>({ ...call, method: 'POST', path: '/schedules/preview', body }),
  concurrency: (key: string, query: Query<Spans.ConcurrencyQuery> = {}, call: CallOptions = {}) =>
    ask<Schedules.ConcurrencyKey>({ ...call, method: 'GET', path: at`/concurrency/${key}`, query }),
});

const backfills = (ask: Ask) => ({
  /** With `dry_run` it is answered what would be requested. */
  request: (taskId: string, body: Spans.RequestBackfill, call: CallOptions = {}) =>
    ask<Schedules.BackfillRequested | Schedules.BackfillPlanned>({
      ...call,
      method: 'POST',
      path: at`/tasks/${taskId}/backfill`,
      body,
    }),
  list: (taskId: string, query: Query<Spans.BackfillQuery> = {}, call: CallOptions = {}) =>
    ask<Schedules.BackfillPage>({
      ...call,
      method: 'GET',
      path: at`/tasks/${taskId}/backfills`,
      query,
    }),
  get: (id: string, query: Read = {}, call: CallOptions = {}) =>
    ask<Schedules.Backfill>({ ...call, method: 'GET', path: at`/backfills/${id}`, query }),
  cancel: (id: string, call: CallOptions = {}) =>
    ask<Schedules.BackfillCanceled>({ ...call, method: 'POST', path: at`/backfills/${id}/cancel` }),
});

const runs = (ask: Ask) => ({
  list: (query: Query<Taken.RunQuery> = {}, call: CallOptions = {}) =>
    ask<Runs.RunPage>({ ...call, method: 'GET', path: '/runs', query }),
  get: (id: string, query: ReadAsOf = {}, call: CallOptions = {}) =>
    ask<Runs.Run>({ ...call, method: 'GET', path: at`/runs/${id}`, query }),
  /** The task's most recent run; null when it never ran. */
  latest: (taskId: string, query: Read = {}, call: CallOptions = {}) =>
    ask<Runs.LatestRun>({ ...call, method: 'GET', path: at`/task/${taskId}/latest`, query }),
  cancel: (id: string, call: CallOptions = {}) =>
    ask<Runs.RunCanceled>({ ...call, method: 'POST', path: at`/runs/${id}/cancel` }),
  retry: (id: string, query: Query<RetryQuery> = {}, call: CallOptions = {}) =>
    ask<Runs.RunRetried>({ ...call, method: 'POST', path: at`/runs/${id}/retry`, query }),
  redrive: (body: Query<RedriveRuns> = {}, call: CallOptions = {}) =>
    ask<Runs.RunsRedriven>({ ...call, method: 'POST', path: '/runs/redrive', body }),
  history: (id: string, query: Query<Looked.HistoryQuery> = {}, call: CallOptions = {}) =>
    ask<Audit.History>({ ...call, method: 'GET', path: at`/runs/${id}/history`, query }),
});

const exports = (connection: ClientConnection) => ({
  runs: (query: Query<RunsExportQuery> = {}, call: Pick<CallOptions, 'signal'> = {}) =>
    connection.download({ ...call, path: '/runs/export', query }),
  events: (query: Query<EventsExportQuery> = {}, call: Pick<CallOptions, 'signal'> = {}) =>
    connection.download({ ...call, path: '/events/export', query }),
});

const statistics = (ask: Ask) => ({
  ofTask: (taskId: string, query: Query<Taken.DaysQuery> = {}, call: CallOptions = {}) =>
    ask<Runs.TaskStatistics>({ ...call, method: 'GET', path: at`/task/${taskId}/stats`, query }),
  summary: (query: Query<Taken.DaysQuery> = {}, call: CallOptions = {}) =>
    ask<Runs.StatisticsSummary>({ ...call, method: 'GET', path: '/stats/summary', query }),
});

const events = (ask: Ask) => ({
  publish: (body: Taken.PublishEvent, call: CallOptions = {}) =>
    ask<Events.EventPublished>({ ...call, method: 'POST', path: '/events', body }),
  topics: (query: Query<Taken.TopicsQuery> = {}, call: CallOptions = {}) =>
    ask<Events.Topics>({ ...call, method: 'GET', path: '/topics', query }),
  recent: (query: Query<Taken.RecentQuery> = {}, call: CallOptions = {}) =>
    ask<Events.RecentEvents>({ ...call, method: 'GET', path: '/stream/recent', query }),
  cleanup: (query: Query<Taken.CleanupQuery> = {}, call: CallOptions = {}) =>
    ask<Events.EventsRemoved>({ ...call, method: 'DELETE', path: '/stream/cleanup', query }),
});

const audit = (ask: Ask) => ({
  list: (query: Query<Looked.AuditQuery> = {}, call: CallOptions = {}) =>
    ask<Audit.AuditPage>({ ...call, method: 'GET', path: '/audit', query }),
  streams: (query: Query<Looked.StreamsQuery> = {}, call: CallOptions = {}) =>
    ask<Audit.StreamPage>({ ...call, method: 'GET', path: '/streams', query }),
  stream: (name: string, query: Query<Looked.EventsQuery> = {}, call: CallOptions = {}) =>
    ask<Audit.StreamEvents>({ ...call, method: 'GET', path: at`/streams/${name}`, query }),
});

const webhooks = (ask: Ask) => ({
  newSecret: (agentId: string, call: CallOptions = {}) =>
    ask<Webhooks.WebhookSecret>({
      ...call,
      method: 'POST',
      path: at`/agents/${agentId}/webhook-secret`,
    }),
  test: (agentId: string, call: CallOptions = {}) =>
    ask<Webhooks.WebhookSent>({
      ...call,
      method: 'POST',
      path: at`/agents/${agentId}/webhook-test`,
    }),
  deliveries: (agentId: string, query: Query<DeliveryQuery> = {}, call: CallOptions = {}) =>
    ask<Webhooks.WebhookDeliveryPage>({
      ...call,
      method: 'GET',
      path: at`/agents/${agentId}/webhooks/deliveries`,
      query,
    }),
  repeat: (agentId: string, deliveryId: string, call: CallOptions = {}) =>
    ask<Webhooks.WebhookSent>({
      ...call,
      method: 'POST',
      path: at`/agents/${agentId}/webhooks/deliveries/${deliveryId}/repeat`,
    }),
});

const projections = (ask: Ask) => {
  const changed =
    (verb: string) =>
    (name: string, call: CallOptions = {}) =>
      ask<Static<typeof Views.RebuildChanged>>({
        ...call,
        method: 'POST',
        path: `${at`/projections/${name}`}/${verb}`,
      });
  const switched =
    (verb: string) =>
    (name: string, { expected_version, ...call }: CallOptions & Views.SwitchBody = {}) =>
      ask<Static<typeof Views.Switched>>({
        ...call,
        method: 'POST',
        path: `${at`/projections/${name}`}/${verb}`,
        ...(expected_version === undefined ? {} : { body: { expected_version } }),
      });
  const parked =
    (order: string) =>
    (name: string, key: string, call: CallOptions = {}) =>
      ask<Static<typeof Views.ParkedKeyDone>>({
        ...call,
        method: 'POST',
        path: `${at`/projections/${name}/parked/${key}`}/${order}`,
      });
  return {
    list: (call: CallOptions = {}) =>
      ask<Static<typeof Views.Projections>>({ ...call, method: 'GET', path: '/projections' }),
    rebuild: (name: string, body: Views.RebuildBody = {}, call: CallOptions = {}) =>
      ask<Static<typeof Views.RebuildOrdered>>({
        ...call,
        method: 'POST',
        path: at`/projections/${name}/rebuild`,
        body,
      }),
    /** Refused where another version is read than `expected_version`. */
    switch: switched('switch'),
    /** The same. */
    rollback: switched('rollback'),
    pause: changed('pause'),
    resume: changed('resume'),
    cancel: changed('cancel'),
    parked: (name: string, query: Query<Page> = {}, call: CallOptions = {}) =>
      ask<Static<typeof Views.ParkedKeyPage>>({
        ...call,
        method: 'GET',
        path: at`/projections/${name}/parked`,
        query,
      }),
    retryParked: parked('retry'),
    skipParked: parked('skip'),
  };
};

const replays = (ask: Ask) => ({
  list: (call: CallOptions = {}) =>
    ask<Static<typeof Replays.ReplayList>>({ ...call, method: 'GET', path: '/replays' }),
  request: (body: Replays.ReplayBody, call: CallOptions = {}) =>
    ask<Static<typeof Replays.ReplayOrdered>>({ ...call, method: 'POST', path: '/replays', body }),
  drop: (name: string, call: CallOptions = {}) =>
    ask<Static<typeof Replays.ReplayDropOrdered>>({
      ...call,
      method: 'DELETE',
      path: at`/replays/${name}`,
    }),
});

const operations = (ask: Ask) => ({
  get: (call: CallOptions = {}) =>
    ask<Static<typeof Operations>>({ ...call, method: 'GET', path: '/operations' }),
  hold: (body: Static<typeof HoldBody>, call: CallOptions = {}) =>
    ask<Static<typeof Held>>({ ...call, method: 'POST', path: '/operations/hold', body }),
  release: (body: Static<typeof ReleaseBody> = {}, call: CallOptions = {}) =>
    ask<Static<typeof Released>>({ ...call, method: 'POST', path: '/operations/release', body }),
});
