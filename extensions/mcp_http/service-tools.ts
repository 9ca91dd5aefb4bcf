import { Type, type TObject, type TProperties } from '@sinclair/typebox';
import type { ExtensionCaller } from '../contract.ts';
import {
  command,
  done,
  headersOf,
  part,
  reading,
  scalar,
  type Parameters,
  type ServiceRequest,
} from './service-requests.ts';
import { changeParameters, previewParameters, taskParameters } from './task-parameters.ts';

/** A tool that makes one request to the service's interface, with the caller's token. */
export interface ServiceTool {
  readonly name: string;
  readonly description: string;
  readonly parameters: TObject;
  /** The tool is listed and allowed only with this scope or `admin`. */
  readonly scope: string;
  /** Read-only. */
  readonly readOnly: boolean;
  request(parameters: Parameters, caller: ExtensionCaller): ServiceRequest;
  /** Converts the response body to the result. Default: the body. */
  result?(body: Parameters): Parameters;
}

const id = (of: string): TProperties => ({
  [`${of}_id`]: Type.String({ minLength: 1, description: `id of the ${of}, a UUID` }),
});
const optional = (description: string) => Type.Optional(Type.String({ description, minLength: 1 }));
const limit = Type.Optional(
  Type.Integer({ minimum: 1, maximum: 200, default: 50, description: 'maximum items of the page' }),
);
const cursor = optional('`next_cursor` of the previous page');
const key = optional('idempotency key: a repetition with the same key has no further effect');
const reason = Type.Optional(
  Type.String({ minLength: 1, maxLength: 500, description: 'why; recorded with the command' }),
);
const ifRevision = Type.Optional(
  Type.Integer({
    minimum: 0,
    description: '`revision` of the task as you know it; rejected if the task has changed since',
  }),
);
const params = Type.Optional(
  Type.Unsafe<object>({
    type: 'object',
    description: 'replaces default `params` of the task, key by key; see its `params_schema`',
  }),
);
const closed = (properties: TProperties): TObject =>
  Type.Object(properties, { additionalProperties: false });

/** The tools that are requests to the service. */
export const serviceTools: readonly ServiceTool[] = [
  {
    name: 'list_tasks',
    description: 'Lists tasks, page by page.',
    parameters: closed({
      status: optional('active, paused or canceled'),
      created_by: optional('id of the agent that owns them'),
      schedule_kind: optional('cron, rrule, once or event'),
      tag: optional('a tag of the tasks'),
      search: optional('part of the title'),
      limit,
      cursor,
    }),
    scope: 'tasks:read',
    readOnly: true,
    request: (parameters) => reading('/tasks', parameters),
  },
  {
    name: 'get_task',
    description: 'Shows a task with its schedule, pipeline and next run.',
    parameters: closed(id('task')),
    scope: 'tasks:read',
    readOnly: true,
    request: ({ task_id }) => reading(`/tasks/${part(task_id)}`),
  },
  {
    name: 'create_task',
    description: 'Creates a task that runs a pipeline of tools on a schedule.',
    parameters: closed({ ...taskParameters, idempotency_key: key }),
    scope: 'tasks:write',
    readOnly: false,
    request: ({ idempotency_key, ...task }, { agentId }) =>
      command('/tasks', { idempotency_key }, { body: { created_by: agentId, ...task } }),
    result: (task) => ({ task_id: task['id'], message: 'the task has been created', task }),
  },
  {
    name: 'update_task',
    description: 'Changes the given fields of a task; the others keep their values.',
    parameters: closed({
      ...id('task'),
      ...changeParameters,
      if_revision: ifRevision,
      reason,
    }),
    scope: 'tasks:write',
    readOnly: false,
    request: ({ task_id, if_revision, reason: why, ...body }) => ({
      method: 'PUT',
      path: `/tasks/${part(task_id)}`,
      headers: headersOf({ if_revision, reason: why }),
      body,
    }),
    result: (task) => ({ task_id: task['id'], message: 'the task has been changed', task }),
  },
  {
    name: 'preview_schedule',
    description:
      'Lists the next fires of a schedule or a task, with warnings about likely mistakes.',
    parameters: previewParameters,
    scope: 'tasks:read',
    readOnly: true,
    request: (parameters) => ({ method: 'POST', path: '/schedules/preview', body: parameters }),
  },
  {
    name: 'run_task',
    description: 'Runs a task once, now, outside of its schedule.',
    parameters: closed({
      ...id('task'),
      params,
      wait_seconds: Type.Optional(
        Type.Integer({ minimum: 1, maximum: 60, description: 'seconds to wait for its end' }),
      ),
      idempotency_key: key,
    }),
    scope: 'tasks:write',
    readOnly: false,
    request: ({ task_id, params: given, wait_seconds, idempotency_key }) =>
      command(
        `/tasks/${part(task_id)}/run_now`,
        { idempotency_key },
        { query: { wait: scalar(wait_seconds) }, ...bodyWith(given) },
      ),
    result: done,
  },
  {
    name: 'pause_task',
    description: 'Pauses a task. It does not fire until it is resumed.',
    parameters: closed({ ...id('task'), idempotency_key: key }),
    scope: 'tasks:write',
    readOnly: false,
    request: ({ task_id, idempotency_key }) =>
      command(`/tasks/${part(task_id)}/pause`, { idempotency_key }),
    result: done,
  },
  {
    name: 'resume_task',
    description: 'Resumes a paused task.',
    parameters: closed({
      ...id('task'),
      missed: Type.Optional(
        Type.Unsafe<string>({
          type: 'string',
          enum: ['skip', 'latest', 'all'],
          default: 'skip',
          description: 'which fires that were missed during the pause run now',
        }),
      ),
      idempotency_key: key,
    }),
    scope: 'tasks:write',
    readOnly: false,
    request: ({ task_id, missed, idempotency_key }) =>
      command(
        `/tasks/${part(task_id)}/resume`,
        { idempotency_key },
        { query: { missed: scalar(missed) } },
      ),
    result: done,
  },
  {
    name: 'snooze_task',
    description: 'Delays the next fire of a task. Later fires keep their times.',
    parameters: closed({
      ...id('task'),
      delay_seconds: Type.Integer({
        minimum: 1,
        maximum: 604_800,
        description: 'seconds of delay, at most a week; repeated snoozes add up',
      }),
      reason,
      idempotency_key: key,
    }),
    scope: 'tasks:write',
    readOnly: false,
    request: ({ task_id, delay_seconds, reason: why, idempotency_key }) =>
      command(
        `/tasks/${part(task_id)}/snooze`,
        { idempotency_key, reason: why },
        { body: { delay_seconds } },
      ),
    result: done,
  },
  {
    name: 'cancel_task',
    description: 'Cancels a task permanently, and its unfinished runs. This cannot be undone.',
    parameters: closed({ ...id('task'), reason, idempotency_key: key }),
    scope: 'tasks:write',
    readOnly: false,
    request: ({ task_id, reason: why, idempotency_key }) =>
      command(`/tasks/${part(task_id)}/cancel`, { idempotency_key, reason: why }),
    result: done,
  },
  {
    name: 'explain_task',
    description:
      'Explains why a task did or did not fire at an instant, with the events that prove it.',
    parameters: closed({
      ...id('task'),
      at: Type.String({ minLength: 1, description: 'a scheduled time, ISO 8601' }),
    }),
    scope: 'tasks:read',
    readOnly: true,
    request: ({ task_id, at }) => reading(`/tasks/${part(task_id)}/explain`, { at }),
  },
  {
    name: 'list_runs',
    description: 'Lists runs, newest first, page by page.',
    parameters: closed({
      task_id: optional('of this task'),
      parent_run_id: optional('child runs of this run'),
      state: optional('queued, running, waiting, retrying, succeeded, failed, canceled or skipped'),
      trigger: optional('schedule, manual, event or backfill'),
      success: Type.Optional(
        Type.Boolean({ description: 'only successful runs, or only failed ones' }),
      ),
      start_time: optional('started after'),
      end_time: optional('started before'),
      limit,
      cursor,
    }),
    scope: 'runs:read',
    readOnly: true,
    request: (parameters) => reading('/runs', parameters),
  },
  {
    name: 'get_run',
    description: 'Shows a run: its state, steps, attempts, output, error and log.',
    parameters: closed(id('run')),
    scope: 'runs:read',
    readOnly: true,
    request: ({ run_id }) => reading(`/runs/${part(run_id)}`),
  },
  {
    name: 'get_run_artifact',
    description: 'Returns a large result of a run, which `get_run` shows as a reference.',
    parameters: closed({
      ...id('run'),
      artifact: Type.String({ minLength: 1, description: '`artifact` of the reference' }),
    }),
    scope: 'runs:read',
    readOnly: true,
    request: ({ run_id, artifact }) => reading(`/runs/${part(run_id)}/artifacts/${part(artifact)}`),
  },
  {
    name: 'cancel_run',
    description: 'Cancels a run that has not ended.',
    parameters: closed({ ...id('run'), reason, idempotency_key: key }),
    scope: 'tasks:write',
    readOnly: false,
    request: ({ run_id, reason: why, idempotency_key }) =>
      command(`/runs/${part(run_id)}/cancel`, { idempotency_key, reason: why }),
    result: done,
  },
  {
    name: 'retry_run',
    description: 'Retries a failed run as a new run.',
    parameters: closed({
      ...id('run'),
      from: Type.Optional(
        Type.Unsafe<string>({
          type: 'string',
          enum: ['failed_step', 'start'],
          default: 'failed_step',
          description: 'start at the failed step and keep earlier results, or start over',
        }),
      ),
      params,
      reason,
      idempotency_key: key,
    }),
    scope: 'tasks:write',
    readOnly: false,
    request: ({ run_id, from, params: given, reason: why, idempotency_key }) =>
      command(
        `/runs/${part(run_id)}/retry`,
        { idempotency_key, reason: why },
        { query: { from: scalar(from) }, ...bodyWith(given) },
      ),
    result: done,
  },
  {
    name: 'list_approvals',
    description: 'Lists pending and decided approvals of steps, newest first.',
    parameters: closed({
      state: optional('pending, approved, rejected, expired or canceled'),
      task_id: optional('of this task'),
      run_id: optional('of this run'),
      limit,
      cursor,
    }),
    scope: 'tasks:read',
    readOnly: true,
    request: (parameters) => reading('/approvals', parameters),
  },
  deciding('approve', 'Approves: the step that asked for it succeeds.'),
  deciding('reject', 'Rejects: the step that asked for it fails.'),
  {
    name: 'list_workers',
    description: 'Lists workers: the tools they offer, their jobs, and when they were last seen.',
    parameters: closed({
      state: optional('active, drained or silent. Default: active'),
      limit,
      cursor,
    }),
    scope: 'ops',
    readOnly: true,
    request: (parameters) => reading('/workers', parameters),
  },
  {
    name: 'publish_event',
    description:
      'Publishes an event under a topic. It triggers the tasks of kind event that match.',
    parameters: closed({
      topic: Type.String({
        minLength: 1,
        maxLength: 200,
        description: 'characters A-Z a-z 0-9 _ . : / -; dots separate its segments',
      }),
      payload: Type.Optional(
        Type.Unsafe<object>({
          type: 'object',
          default: {},
          description: 'content, which the triggered runs read as `${event.payload}`',
        }),
      ),
      source_agent_id: optional('id of the publishing agent. Default: you'),
      reason,
      idempotency_key: key,
    }),
    scope: 'events:publish',
    readOnly: false,
    request: ({ reason: why, idempotency_key, ...event }, { agentId }) =>
      command(
        '/events',
        { idempotency_key, reason: why },
        { body: { source_agent_id: agentId, payload: {}, ...event } },
      ),
    result: done,
  },
  {
    name: 'run_events',
    description: 'Lists the events of a run from the log.',
    parameters: closed({
      ...id('run'),
      from: Type.Optional(
        Type.Integer({
          minimum: 0,
          default: 0,
          description: 'revision to start at: `next_from` of the previous page',
        }),
      ),
      limit,
    }),
    // The log itself is for auditors only, as at `GET /streams/{stream}`.
    scope: 'audit:read',
    readOnly: true,
    request: ({ run_id, ...page }) => reading(`/streams/${part(`run-${String(run_id)}`)}`, page),
  },
];

/** The body of a request for a run, if it replaces params. */
function bodyWith(params: unknown): Pick<ServiceRequest, 'body'> {
  return params === undefined ? {} : { body: { params } };
}

/** @param verdict the last segment of the path, and the start of the tool's name */
function deciding(verdict: 'approve' | 'reject', description: string): ServiceTool {
  return {
    name: `${verdict}_approval`,
    description,
    parameters: closed({
      ...id('approval'),
      comment: Type.Optional(
        Type.String({ minLength: 1, maxLength: 2000, description: 'why; part of the result' }),
      ),
      idempotency_key: key,
    }),
    scope: 'approvals:write',
    readOnly: false,
    request: ({ approval_id, idempotency_key, ...body }) =>
      command(`/approvals/${part(approval_id)}/${verdict}`, { idempotency_key }, { body }),
    result: done,
  };
}
