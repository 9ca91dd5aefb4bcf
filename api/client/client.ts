import type { Static } from '@sinclair/typebox';
import type * as Audit from '../schemas/response-schemas-audit.ts';
import type * as Agents from '../schemas/response-schemas-agents.ts';
import type * as Events from '../schemas/response-schemas-events.ts';
import type * as Answering from '../schemas/approval-schemas.ts';
import type * as Approvals from '../schemas/response-schemas-approvals.ts';
import type { HealthReport, Readiness } from '../schemas/response-schemas-health.ts';
import type {
  Held,
  HoldBody,
  Operations,
  ReleaseBody,
  Released,
} from '../schemas/response-schemas-operations.ts';
import type * as Views from '../schemas/response-schemas-projections.ts';
import type * as Replays from '../schemas/response-schemas-replays.ts';
import type * as Schedules from '../schemas/response-schemas-schedules.ts';
import {
  ClientConnection,
  type ApiResponse,
  type ApiRequest,
  type CallOptions,
  type ClientOptions,
  type LiveRequest,
} from './client-connection.ts';
import type * as Looked from '../schemas/audit-schemas.ts';
import type { EventsExportQuery, RunsExportQuery } from '../schemas/export-schemas.ts';
import type * as Spans from '../schemas/schedule-schemas.ts';
import type * as Requests from '../schemas/schemas.ts';
import { agents, keys } from './agent-methods.ts';
import { artifactPath, pathTo } from './path-to.ts';
import { runs } from './run-methods.ts';
import { secrets } from './secret-methods.ts';
import { statistics } from './statistics-methods.ts';
import { webhooks } from './webhook-methods.ts';
import { tasks } from './task-methods.ts';
import { namespaces } from './namespace-methods.ts';
import { jobs, workers } from './worker-methods.ts';

export { ApiError } from './client-connection.ts';
export type {
  ApiRequest,
  ApiResponse,
  CallOptions,
  ClientOptions,
  Credentials,
  KeptTokens,
  LiveRequest,
} from './client-connection.ts';
export type { ServerSentEvent } from './server-sent-events.ts';
export type { Agent, ApiKey } from '../schemas/response-schemas-agents.ts';
export type { Approval } from '../schemas/response-schemas-approvals.ts';
export type {
  EventPage,
  PublishedEvent,
  RecentEvents,
  Topics,
} from '../schemas/response-schemas-events.ts';
export type { HealthReport } from '../schemas/response-schemas-health.ts';
export type {
  Backfill,
  ConcurrencyKey,
  Explanation,
} from '../schemas/response-schemas-schedules.ts';
export type {
  Run,
  RunExplanation,
  RunItem,
  RunPage,
  RunsCanceled,
  RunsRedriven,
} from '../schemas/response-schemas-runs.ts';
export type {
  ErrorStatistics,
  StatisticsSummary,
  TaskStatistics,
} from '../schemas/statistics-schemas.ts';
export type { Task, TaskItem, TaskPage } from '../schemas/response-schemas-tasks.ts';
export type { WebhookDelivery } from '../schemas/response-schemas-webhooks.ts';
export type { Job, Worker } from '../schemas/response-schemas-workers.ts';
export type { CreateTask, PublishEvent, UpdateTask } from '../schemas/schemas.ts';
export type { Secret } from '../schemas/secret-schemas.ts';

/** The client's methods; each throws {@link ApiError} when the service refuses. */
export type Client = ReturnType<typeof createClient>;

/**
 * A client of the service for TypeScript and JavaScript, over `fetch`. Its types are those of the schemas that the
 * service checks requests against.
 */
export function createClient(options: ClientOptions) {
  const connection = new ClientConnection(options);
  const api = methodsOver((request) => connection.call(request));
  return {
    /** For endpoints without a method here. */
    request: <T>(request: ApiRequest): Promise<ApiResponse<T>> => connection.call<T>(request),
    /** The messages of a live path: `/runs/live`, `/tasks/{id}/live`, `/audit/live`. */
    live: (request: LiveRequest) => connection.live(request),
    /** Rows as text, as they arrive; with `end_mark`, a last row proves that they are complete. */
    exports: exports(connection),
    /** The access token; null without one. */
    token: () => connection.token(),
    tokens: tokens(api),
    agents: agents(api),
    keys: keys(api),
    tasks: tasks(api),
    schedules: schedules(api),
    backfills: backfills(api),
    runs: runs(api),
    approvals: approvals(api),
    callbacks: callbacks(api),
    statistics: statistics(api),
    events: events(api),
    audit: audit(api),
    webhooks: webhooks(api),
    secrets: secrets(api),
    namespaces: namespaces(api),
    workers: workers(api),
    jobs: jobs(api),
    projections: projections(api),
    replays: replays(api),
    operations: operations(api),
    health: health(api),
  };
}

/** Parameters with a default may be left out, or be undefined. */
export type Query<T> = { readonly [Name in keyof T]?: T[Name] | undefined };
export interface Read {
  /** A position of the log that the response must have seen. */
  readonly after?: string | undefined;
}
interface Page {
  readonly limit: number;
  readonly offset: number;
  readonly cursor: string;
}
export interface ReadAsOf extends Read {
  /** A position or a time: the resource as it was then. */
  readonly as_of?: string | undefined;
}

/** The dependencies of the client's methods. */
export type Api = ReturnType<typeof methodsOver>;
type Command = 'POST' | 'PUT' | 'DELETE';

/** Creates the client's methods from routes. In a path, `:id` stands for the method's id. */
function methodsOver(ask: <T>(request: ApiRequest) => Promise<ApiResponse<T>>) {
  return {
    ask,
    /** Reads a path. */
    read:
      <T, Q = Read>(path: string) =>
      (query: Query<Q> = {}, call: CallOptions = {}) =>
        ask<T>({ ...call, method: 'GET', path, query }),
    /** Reads a path with an id. */
    readOne:
      <T, Q = Read>(path: string) =>
      (id: string, query: Query<Q> = {}, call: CallOptions = {}) =>
        ask<T>({ ...call, method: 'GET', path: pathTo(path, id), query }),
    /** Sends a command with a body. */
    send:
      <T, B>(method: Command, path: string) =>
      (body: B, call: CallOptions = {}) =>
        ask<T>({ ...call, method, path, body }),
    /** Sends a command with a body to a path with an id. */
    sendTo:
      <T, B>(method: Command, path: string) =>
      (id: string, body: B, call: CallOptions = {}) =>
        ask<T>({ ...call, method, path: pathTo(path, id), body }),
    /** The same for paths whose id is the credential. */
    sendOpen:
      <T, B>(path: string) =>
      (id: string, body: B, call: CallOptions = {}) =>
        ask<T>({ ...call, method: 'POST', path: pathTo(path, id), body, open: true }),
    /** Sends a command without a body to a path with an id. */
    act:
      <T>(method: Command, path: string) =>
      (id: string, call: CallOptions = {}) =>
        ask<T>({ ...call, method, path: pathTo(path, id) }),
    /** The same, with a query. */
    actWith:
      <T, Q>(method: Command, path: string) =>
      (id: string, query: Query<Q> = {}, call: CallOptions = {}) =>
        ask<T>({ ...call, method, path: pathTo(path, id), query }),
    /** Requests a run. `params` replace the defaults of its task, key by key. */
    runWith:
      <T, Q>(path: string) =>
      (
        id: string,
        { params, ...query }: Query<Q> & Query<Requests.RunNow> = {},
        call: CallOptions = {},
      ) =>
        ask<T>({
          ...call,
          method: 'POST',
          path: pathTo(path, id),
          query,
          ...(params === undefined ? {} : { body: { params } }),
        }),
    /** Sends a command without a body to a path with two ids. */
    actOnPart:
      <T>(path: string) =>
      (id: string, part: string, call: CallOptions = {}) =>
        ask<T>({ ...call, method: 'POST', path: pathTo(path, id, part) }),
    /** Removes an object that a path with two ids names. */
    removePart:
      <T>(path: string) =>
      (id: string, part: string, call: CallOptions = {}) =>
        ask<T>({ ...call, method: 'DELETE', path: pathTo(path, id, part) }),
  };
}

/** A 503 is thrown like all errors. */
const health = ({ ask }: Api) => ({
  report: () => ask<HealthReport>({ method: 'GET', path: '/health', open: true }),
  ready: () => ask<Readiness>({ method: 'GET', path: '/health/ready', open: true }),
});

const tokens = ({ ask }: Api) => ({
  get: (body: Requests.TokenRequest) =>
    ask<Agents.Tokens>({ method: 'POST', path: '/agents/auth/token', body, open: true }),
  refresh: (body: Requests.RefreshRequest) =>
    ask<Agents.Tokens>({ method: 'POST', path: '/agents/auth/refresh', body, open: true }),
  revoke: (body: Requests.RevokeRequest) =>
    ask<Agents.Revoked>({ method: 'POST', path: '/agents/auth/revoke', body, open: true }),
});

const schedules = ({ readOne, send }: Api) => ({
  preview: send<Schedules.SchedulePreview, Spans.PreviewSchedule>('POST', '/schedules/preview'),
  concurrency: readOne<Schedules.ConcurrencyKey, Spans.ConcurrencyQuery>('/concurrency/:key'),
});

type BackfillResponse = Schedules.BackfillRequested | Schedules.BackfillPlanned;

const backfills = ({ readOne, sendTo, act }: Api) => ({
  /** With `dry_run`, the response shows what would be requested. */
  request: sendTo<BackfillResponse, Spans.RequestBackfill>('POST', '/tasks/:id/backfill'),
  list: readOne<Schedules.BackfillPage, Spans.BackfillQuery>('/tasks/:id/backfills'),
  get: readOne<Schedules.Backfill>('/backfills/:id'),
  cancel: act<Schedules.BackfillCanceled>('POST', '/backfills/:id/cancel'),
});

const approvals = ({ ask, read, readOne }: Api) => {
  const decide =
    (verdict: 'approve' | 'reject') =>
    (id: string, body: Query<Answering.DecideApproval> = {}, call: CallOptions = {}) =>
      ask<Approvals.ApprovalDecided>({
        ...call,
        method: 'POST',
        path: pathTo(`/approvals/:id/${verdict}`, id),
        body,
      });
  return {
    list: read<Approvals.ApprovalPage, Answering.ApprovalQuery>('/approvals'),
    get: readOne<Approvals.Approval>('/approvals/:id'),
    approve: decide('approve'),
    reject: decide('reject'),
  };
};

/** Sent without the client's own token, because the token in the path is the credential. */
const callbacks = ({ sendOpen }: Api) => ({
  complete: sendOpen<Approvals.CallbackTaken, unknown>('/callbacks/:token'),
  fail: sendOpen<Approvals.CallbackTaken, Answering.FailCallback>('/callbacks/:token/fail'),
});

const exports = (connection: ClientConnection) => ({
  /** The JSON of an artifact, as it arrives. */
  artifact: (id: string, artifact: string, call: Pick<CallOptions, 'signal'> = {}) =>
    connection.download({ ...call, path: pathTo(artifactPath, id, artifact) }),
  runs: (query: Query<RunsExportQuery> = {}, call: Pick<CallOptions, 'signal'> = {}) =>
    connection.download({ ...call, path: '/runs/export', query }),
  events: (query: Query<EventsExportQuery> = {}, call: Pick<CallOptions, 'signal'> = {}) =>
    connection.download({ ...call, path: '/events/export', query }),
});

const events = ({ ask, read, readOne, send }: Api) => ({
  publish: send<Events.EventPublished, Requests.PublishEvent>('POST', '/events'),
  list: read<Events.EventPage, Requests.EventQuery>('/events'),
  get: readOne<Events.PublishedEvent>('/events/:id'),
  topics: read<Events.Topics, Requests.TopicsQuery>('/topics'),
  recent: read<Events.RecentEvents, Requests.RecentQuery>('/stream/recent'),
  cleanup: (query: Query<Requests.CleanupQuery> = {}, call: CallOptions = {}) =>
    ask<Events.EventsRemoved>({ ...call, method: 'DELETE', path: '/stream/cleanup', query }),
});

const audit = ({ read, readOne }: Api) => ({
  list: read<Audit.AuditPage, Looked.AuditQuery>('/audit'),
  streams: read<Audit.StreamPage, Looked.StreamsQuery>('/streams'),
  stream: readOne<Audit.StreamEvents, Looked.EventsQuery>('/streams/:stream'),
});

const projections = ({ ask, readOne, act, actOnPart }: Api) => {
  const redirect =
    (verb: string) =>
    (name: string, { expected_version, ...call }: CallOptions & Views.SwitchBody = {}) =>
      ask<Static<typeof Views.Switched>>({
        ...call,
        method: 'POST',
        path: pathTo(`/projections/:name/${verb}`, name),
        ...(expected_version === undefined ? {} : { body: { expected_version } }),
      });
  const onRebuild = (verb: string) =>
    act<Static<typeof Views.RebuildChanged>>('POST', `/projections/:name/${verb}`);
  const onParkedKey = (verb: string) =>
    actOnPart<Static<typeof Views.ParkedKeyDone>>(`/projections/:name/parked/:key/${verb}`);
  return {
    list: (call: CallOptions = {}) =>
      ask<Static<typeof Views.Projections>>({ ...call, method: 'GET', path: '/projections' }),
    rebuild: (name: string, body: Views.RebuildBody = {}, call: CallOptions = {}) =>
      ask<Static<typeof Views.RebuildOrdered>>({
        ...call,
        method: 'POST',
        path: pathTo('/projections/:name/rebuild', name),
        body,
      }),
    /** Refused unless `expected_version` is the version that is read. */
    switch: redirect('switch'),
    /** Refused as described for {@link switch}. */
    rollback: redirect('rollback'),
    pause: onRebuild('pause'),
    resume: onRebuild('resume'),
    cancel: onRebuild('cancel'),
    parked: readOne<Static<typeof Views.ParkedKeyPage>, Page>('/projections/:name/parked'),
    retryParked: onParkedKey('retry'),
    skipParked: onParkedKey('skip'),
  };
};

const replays = ({ ask, send, act }: Api) => ({
  list: (call: CallOptions = {}) =>
    ask<Static<typeof Replays.ReplayList>>({ ...call, method: 'GET', path: '/replays' }),
  request: send<Static<typeof Replays.ReplayOrdered>, Replays.ReplayBody>('POST', '/replays'),
  drop: act<Static<typeof Replays.ReplayDropOrdered>>('DELETE', '/replays/:name'),
});

const operations = ({ ask, send }: Api) => ({
  get: (call: CallOptions = {}) =>
    ask<Static<typeof Operations>>({ ...call, method: 'GET', path: '/operations' }),
  hold: send<Static<typeof Held>, Static<typeof HoldBody>>('POST', '/operations/hold'),
  release: (body: Static<typeof ReleaseBody> = {}, call: CallOptions = {}) =>
    ask<Static<typeof Released>>({ ...call, method: 'POST', path: '/operations/release', body }),
});
