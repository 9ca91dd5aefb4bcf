import type * as Looked from '../schemas/audit-schemas.ts';
import type * as Audit from '../schemas/response-schemas-audit.ts';
import type * as Runs from '../schemas/response-schemas-runs.ts';
import type {
  CancelRuns,
  RedriveRuns,
  RetryQuery,
  RetryRun,
} from '../schemas/run-retry-schemas.ts';
import type * as Requests from '../schemas/schemas.ts';
import type { CallOptions } from './client-connection.ts';
import type { Api, Query, ReadAsOf } from './client.ts';
import { artifactPath, pathTo } from './path-to.ts';

/** Shows, explains, retries and cancels runs. */
export const runs = ({ ask, read, readOne, act }: Api) => ({
  list: read<Runs.RunPage, Requests.RunQuery>('/runs'),
  get: readOne<Runs.Run, ReadAsOf>('/runs/:id'),
  /** The task's most recent run; null if the task never ran. */
  latest: readOne<Runs.LatestRun>('/task/:id/latest'),
  explain: readOne<Runs.RunExplanation, Requests.RunExplainQuery>('/runs/:id/explain'),
  cancel: act<Runs.RunCanceled>('POST', '/runs/:id/cancel'),
  retry: (
    id: string,
    { params, step, ...query }: Query<RetryQuery> & Query<RetryRun> = {},
    call: CallOptions = {},
  ) =>
    ask<Runs.RunRetried>({
      ...call,
      method: 'POST',
      path: pathTo('/runs/:id/retry', id),
      query,
      ...((params ?? step) === undefined ? {} : { body: { params, step } }),
    }),
  /** Cancels the unfinished runs that match a filter. */
  cancelMany: (body: Query<CancelRuns> = {}, call: CallOptions = {}) =>
    ask<Runs.RunsCanceled>({ ...call, method: 'POST', path: '/runs/cancel', body }),
  /** A large result, which the run shows as a reference. To stream its text, use {@link exports}. */
  artifact: (id: string, artifact: string, call: CallOptions = {}) =>
    ask<unknown>({ ...call, method: 'GET', path: pathTo(artifactPath, id, artifact) }),
  redrive: (body: Query<RedriveRuns> = {}, call: CallOptions = {}) =>
    ask<Runs.RunsRedriven>({ ...call, method: 'POST', path: '/runs/redrive', body }),
  history: readOne<Audit.History, Looked.HistoryQuery>('/runs/:id/history'),
});
