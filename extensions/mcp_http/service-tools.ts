import { Type, type TObject, type TProperties } from '@sinclair/typebox';
import type { ExtensionCaller } from '../contract.ts';
import { changeParameters, previewParameters, taskParameters } from './task-parameters.ts';

/** Parameters of a call, checked against the tool's schema. */
export type Parameters = Readonly<Record<string, unknown>>;

/** A request of the service's own interface. */
export interface ServiceRequest {
  readonly method: 'GET' | 'POST' | 'PUT';
  /** Encoded. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A tool that is one request of the service's own interface, made with the caller's token. */
export interface ServiceTool {
  readonly name: string;
  readonly description: string;
  readonly parameters: TObject;
  /** Without it, or `admin`, the tool is neither listed nor allowed. */
  readonly scope: string;
  /** Changes nothing. */
  readonly readOnly: boolean;
  request(parameters: Parameters, caller: ExtensionCaller): ServiceRequest;
  /** The result made of the body of the answer; left out: the body itself. */
  result?(body: Parameters): Parameters;
}

const id = (of: string): TProperties => ({
  [`${of}_id`]: Type.String({ minLength: 1, description: `id of the ${of}, a UUID` }),
});
const optional = (description: string) => Type.Optional(Type.String({ description, minLength: 1 }));
const limit = Type.Optional(
  Type.Integer({ minimum: 1, maximum: 200, default: 50, description: 'most items of the page' }),
);
const cursor = optional('`next_cursor` of the page before');
const key = optional('a repetition with the same key is the same command');
const reason = Type.Optional(
  Type.String({ minLength: 1, maxLength: 500, description: 'why; recorded with the command' }),
);
const ifRevision = Type.Optional(
  Type.Integer({
    minimum: 0,
    description: '`revision` of the task as you know it; refused if the task has changed since',
  }),
);
const closed = (properties: TProperties): TObject =>
  Type.Object(properties, { additionalProperties: false });

/** The tools of the interface that are requests to the service. */
export const serviceTools: readonly ServiceTool[] = [
  {
    name: 'list_tasks',
    description: 'Lists tasks, page by page.',
    parameters: closed({
      status: optional('active, paused or canceled'),
      created_by: optional('id of the agent that owns them'),
      schedule_kind: optional('cron, rrule, once or event'),
      tag: optional('a tag that they have'),
      search: optional('stands in the title'),
      limit,
      cursor,
    }),
    scope: 'tasks:read',
    readOnly: true,
    request: (parameters) => reading('/tasks', parameters),
  },
  {
    name: 'get_task',
    description: 'Shows a task: its schedule, its pipeline, when it runs next.',
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
    result: (task) => ({ task_id: task['id'], message: 'the task is created', task }),
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
    result: (task) => ({ task_id: task['id'], message: 'the task is changed', task }),
  },
  {
    name: 'preview_schedule',
    description: 'Tells when a schedule, or that of a task, fires next, and what may not be meant.',
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
      wait_seconds: Type.Optional(
        Type.Integer({ minimum: 1, maximum: 60, description: 'waits so long for its end' }),
      ),
      idempotency_key: key,
    }),
    scope: 'tasks:write',
    readOnly: false,
    request: ({ task_id, wait_seconds, idempotency_key }) =>
      command(
        `/tasks/${part(task_id)}/run_now`,
        { idempotency_key },
        { query: { wait: scalar(wait_seconds) } },
      ),
    result: done,
  },
  {
    name: 'pause_task',
    description: 'Pauses a task: it fires no more until it is resumed.',
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
          description: 'which of the fires that the pause held back run now',
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
    description: 'Delays the next fire of a task; the ones after it keep their times.',
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
    description: 'Tells why a task did or did not fire at an instant, and which events say so.',
    parameters: closed({
      ...id('task'),
      at: Type.String({ minLength: 1, description: 'a time of its schedule, ISO 8601' }),
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
      state: optional('queued, running, retrying, succeeded, failed, canceled or skipped'),
      trigger: optional('schedule, manual, event or backfill'),
      success: Type.Optional(Type.Boolean({ description: 'ended well, or failed' })),
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
    description: 'Starts a new run in place of a failed one.',
    parameters: closed({
      ...id('run'),
      from: Type.Optional(
        Type.Unsafe<string>({
          type: 'string',
          enum: ['failed_step', 'start'],
          default: 'failed_step',
          description: 'begin at the failed step with the earlier results, or at the start',
        }),
      ),
      reason,
      idempotency_key: key,
    }),
    scope: 'tasks:write',
    readOnly: false,
    request: ({ run_id, from, reason: why, idempotency_key }) =>
      command(
        `/runs/${part(run_id)}/retry`,
        { idempotency_key, reason: why },
        { query: { from: scalar(from) } },
      ),
    result: done,
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
          description: 'what the triggered runs read as `${event.payload}`',
        }),
      ),
      source_agent_id: optional('id of the agent that publishes; you, if left out'),
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
    description: 'Shows what happened to a run, event by event, as it stands in the log.',
    parameters: closed({
      ...id('run'),
      from: Type.Optional(
        Type.Integer({
          minimum: 0,
          default: 0,
          description: 'revision to start at: `next_from` of the page before',
        }),
      ),
      limit,
    }),
    // What the log itself holds is for auditors, as at `GET /streams/{stream}`.
    scope: 'audit:read',
    readOnly: true,
    request: ({ run_id, ...page }) => reading(`/streams/${part(`run-${String(run_id)}`)}`, page),
  },
];

function reading(path: string, parameters: Parameters = {}): ServiceRequest {
  const query = Object.fromEntries(
    Object.entries(parameters).map(([name, value]) => [name, scalar(value)]),
  );
  return { method: 'GET', path, query };
}

function command(
  path: string,
  given: Parameters,
  more: Pick<ServiceRequest, 'body' | 'query'> = {},
): ServiceRequest {
  return { method: 'POST', path, headers: headersOf(given), ...more };
}

/** The headers of a command that are parameters of its tool. */
function headersOf({ idempotency_key, if_revision, reason }: Parameters): Record<string, string> {
  return {
    ...(typeof idempotency_key === 'string' ? { 'idempotency-key': idempotency_key } : {}),
    ...(typeof if_revision === 'number' ? { 'if-match': `"${if_revision}"` } : {}),
    ...(typeof reason === 'string' ? { 'x-reason': headerOf(reason) } : {}),
  };
}

/** A header carries bytes on one line: UTF-8, one character a byte. */
const headerOf = (text: string): string =>
  Buffer.from(text.replaceAll(/\p{Cc}+/gu, ' ').trim()).toString('latin1');

/** `{success, message, details: {…}}` → `{…, message}` */
function done({ message, details }: Parameters): Parameters {
  return { ...(details as object | undefined), message };
}

function part(value: unknown): string {
  return encodeURIComponent(String(value));
}

function scalar(value: unknown): string | number | boolean | undefined {
  return ['string', 'number', 'boolean'].includes(typeof value)
    ? (value as string | number | boolean)
    : undefined;
}
