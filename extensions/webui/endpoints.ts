import { Type, type TObject, type TProperties } from '@sinclair/typebox';
import type { EndpointDescription } from '../contract.ts';

const RUN_ID = '6f1c1f0e-5f3b-5d0b-9a55-0d4f2f4f2a11';
const TASK_ID = '01a1fc11-0505-734a-8920-9c4c55a40f65';

const given = {
  title: 'Morning report',
  schedule_kind: 'cron',
  schedule_expr: '0 9 * * MON-FRI',
  payload: { pipeline: [{ uses: 'echo', with: { text: 'Good morning' } }] },
};

const preview = {
  valid: true,
  schedule_text: 'at 09:00, Monday through Friday, UTC',
  fires: [{ at: '2026-11-23T09:00:00.000Z', local: '2026-11-23T09:00:00+00:00', note: null }],
  warnings: [],
};

/** The task that is created from {@link given}. */
const task = {
  ...given,
  id: TASK_ID,
  schedule_text: 'at 09:00, Monday through Friday, UTC',
  description: given.title,
  created_by: '01a1fc11-0097-7482-9812-7f37379989fe',
  timezone: 'UTC',
  params_schema: null,
  priority: 5,
  max_retries: 3,
  backoff_strategy: 'exponential_jitter',
  dedupe_key: null,
  dedupe_window_seconds: null,
  concurrency_key: null,
  concurrency_limit: 1,
  overlap_policy: 'allow',
  misfire_policy: 'latest',
  misfire_grace_seconds: 60,
  retry_delay_seconds: 1,
  retry_max_delay_seconds: 300,
  timeout_seconds: null,
  starts_at: null,
  ends_at: null,
  max_runs: null,
  jitter_seconds: 0,
  pause_after_failures: null,
  tags: [],
  status: 'active',
  created_at: '2026-11-20T08:00:00.000Z',
  updated_at: '2026-11-20T08:00:00.000Z',
  next_run_at: '2026-11-23T09:00:00.000Z',
  last_run_at: null,
  pause_reason: null,
  paused: null,
  snoozed: null,
  exhausted: false,
  revision: 0,
  warnings: [],
};

const text = Type.String();
const id = Type.String({ format: 'uuid' });
const dateTime = Type.String({ format: 'date-time' });
const status = Type.Union(['active', 'paused', 'canceled'].map((each) => Type.Literal(each)));
const closed = <T extends TProperties>(properties: T): TObject<T> =>
  Type.Object(properties, { additionalProperties: false });
const tasksOf = <T extends TProperties>(properties: T) =>
  closed({ tasks: Type.Array(closed(properties)) });

export const endpoints: readonly EndpointDescription[] = [
  {
    method: 'get',
    path: '/',
    operationId: 'getPage',
    description: 'Without the trailing slash, the response is a redirect (308) to `/ext/webui/`.',
    examples: { answers: { 200: '<!doctype html><title>Tasks</title>' } },
    summary: 'The web page',
    scopes: null,
    answers: { 200: Type.String({ contentMediaType: 'text/html' }) },
    answerHeaders: ['ETag'],
    // With SVC_WEBUI_REQUIRE_AUTH.
    refusals: ['unauthorized'],
  },
  {
    method: 'get',
    path: '/api/tasks',
    operationId: 'listTasksForPage',
    examples: {
      answers: {
        200: {
          tasks: [
            {
              id: TASK_ID,
              title: task.title,
              status: task.status,
              next_run: task.next_run_at,
              schedule_text: task.schedule_text,
            },
          ],
        },
      },
    },
    summary: 'Summaries of the newest tasks',
    scopes: ['tasks:read'],
    answers: {
      200: tasksOf({
        id,
        title: text,
        status,
        next_run: Type.Union([dateTime, Type.Null()]),
        schedule_text: text,
      }),
    },
  },
  {
    method: 'get',
    path: '/api/titles',
    operationId: 'listTitlesForPage',
    examples: {
      answers: { 200: { tasks: [{ id: TASK_ID, title: task.title, timezone: task.timezone }] } },
    },
    summary: 'Titles and time zones of up to 100 tasks; their ids are separated by commas',
    scopes: ['tasks:read'],
    query: Type.Object({ ids: text }),
    answers: { 200: tasksOf({ id, title: text, timezone: text }) },
  },
  {
    method: 'get',
    path: '/api/states',
    operationId: 'listRunStatesForPage',
    examples: { answers: { 200: { runs: [{ id: RUN_ID, state: 'succeeded' }] } } },
    summary: 'States of up to 100 runs; their ids are separated by commas',
    scopes: ['runs:read'],
    query: Type.Object({ ids: text }),
    answers: { 200: closed({ runs: Type.Array(closed({ id, state: text })) }) },
  },
  {
    method: 'post',
    path: '/api/tasks',
    operationId: 'createTaskFromPage',
    examples: { body: given, answers: { 201: task } },
    summary: 'Creates a task; by default, the caller is its owner and the title its description',
    scopes: ['tasks:write'],
    body: { allOf: [{ $ref: 'UpdateTask' }], required: ['title', 'schedule_kind', 'payload'] },
    answers: { 201: { $ref: 'Task' } },
    answerHeaders: ['ETag', 'Location'],
    idempotent: true,
    refusals: ['conflict'],
  },
  {
    method: 'post',
    path: '/api/preview',
    operationId: 'previewScheduleForPage',
    examples: {
      body: { schedule_kind: 'cron', schedule_expr: '0 9 * * MON-FRI', count: 1 },
      answers: { 200: preview },
    },
    summary: 'Shows the fires or the errors of a schedule while it is being typed',
    scopes: ['tasks:read'],
    body: Type.Object({}, { description: 'As for `POST /schedules/preview`.' }),
    answers: {
      200: Type.Union([
        closed({
          valid: Type.Literal(true),
          schedule_text: text,
          fires: Type.Array(
            closed({ at: dateTime, local: text, note: Type.Union([text, Type.Null()]) }),
          ),
          warnings: Type.Array(text),
        }),
        closed({
          valid: Type.Literal(false),
          message: text,
          issues: Type.Array(closed({ field: text, issue: text })),
        }),
      ]),
    },
  },
  {
    method: 'post',
    path: '/api/check',
    operationId: 'checkTaskForPage',
    examples: {
      body: { task_id: TASK_ID, title: 'Evening report' },
      answers: {
        200: {
          valid: true,
          schedule_text: task.schedule_text,
          next_fire_at: task.next_run_at,
          changes: [{ path: 'title', before: task.title, after: 'Evening report' }],
          warnings: [],
        },
      },
    },
    summary: 'Shows the errors or the changes of a task while it is being edited',
    scopes: ['tasks:write'],
    body: Type.Object({}, { description: 'As for `POST /tasks/check`.' }),
    answers: {
      200: Type.Union([
        closed({
          valid: Type.Literal(true),
          schedule_text: text,
          next_fire_at: Type.Union([dateTime, Type.Null()], {
            description: 'null: none, or an event task',
          }),
          changes: Type.Array(
            closed({ path: text, before: Type.Unknown(), after: Type.Unknown() }),
          ),
          warnings: Type.Array(text),
        }),
        closed({
          valid: Type.Literal(false),
          message: text,
          issues: Type.Array(closed({ field: text, issue: text })),
        }),
      ]),
    },
    refusals: ['not_found', 'conflict'],
  },
];
