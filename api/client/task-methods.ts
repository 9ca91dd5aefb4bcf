import type { DueQuery, DueTaskPage } from '../schemas/due-schemas.ts';
import type * as Fires from '../schemas/fire-schemas.ts';
import type * as Audit from '../schemas/response-schemas-audit.ts';
import type * as Schedules from '../schemas/response-schemas-schedules.ts';
import type * as Tasks from '../schemas/response-schemas-tasks.ts';
import type * as Looked from '../schemas/audit-schemas.ts';
import type * as Spans from '../schemas/schedule-schemas.ts';
import type * as Requests from '../schemas/schemas.ts';
import type { ToolList, ToolQuery } from '../schemas/tool-schemas.ts';
import type { Api, ReadAsOf } from './client.ts';
import type { CallOptions } from './client-connection.ts';

/** A query that requires `from` and `to`. */
type Span<Q extends { readonly from: string; readonly to: string }> = Pick<Q, 'from' | 'to'> &
  Partial<Q>;

/** The client's methods for tasks. */
export const tasks = ({ read, readOne, send, sendTo, act, actWith, runWith }: Api) => ({
  create: send<Tasks.Task, Requests.CreateTask>('POST', '/tasks'),
  list: read<Tasks.TaskPage, Requests.TaskQuery>('/tasks'),
  due: read<DueTaskPage, DueQuery>('/tasks/due'),
  outcomes: read<Fires.Outcomes, Fires.OutcomesQuery>('/tasks/outcomes'),
  check: send<Tasks.TaskChecked, Requests.CheckTask>('POST', '/tasks/check'),
  tools: read<ToolList, ToolQuery>('/tools'),
  get: readOne<Tasks.Task, ReadAsOf>('/tasks/:id'),
  update: sendTo<Tasks.Task, Requests.UpdateTask>('PUT', '/tasks/:id'),
  runNow: runWith<Tasks.RunRequested, Requests.RunNowQuery>('/tasks/:id/run_now'),
  snooze: sendTo<Tasks.Snoozed, Requests.SnoozeTask>('POST', '/tasks/:id/snooze'),
  pause: act<Tasks.StatusChanged>('POST', '/tasks/:id/pause'),
  resume: actWith<Tasks.StatusChanged, Requests.ResumeQuery>('POST', '/tasks/:id/resume'),
  cancel: act<Tasks.TaskCanceled>('POST', '/tasks/:id/cancel'),
  explain: (id: string, query: Spans.ExplainQuery, call: CallOptions = {}) =>
    readOne<Schedules.Explanation, Spans.ExplainQuery>('/tasks/:id/explain')(id, query, call),
  fires: (id: string, query: Span<Fires.FiresQuery>, call: CallOptions = {}) =>
    readOne<Fires.DecidedFires, Fires.FiresQuery>('/tasks/:id/fires')(id, query, call),
  calendar: (id: string, query: Span<Fires.CalendarQuery>, call: CallOptions = {}) =>
    readOne<Fires.Calendar, Fires.CalendarQuery>('/tasks/:id/calendar')(id, query, call),
  history: readOne<Audit.History, Looked.HistoryQuery>('/tasks/:id/history'),
});
