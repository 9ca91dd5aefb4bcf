import { newId } from '../../../domain/ids.ts';
import { plainTask } from '../plain-task.ts';
import { cursors, long, pages } from './refusal-parts.ts';
import { agentRows } from './refusal-rows-agents.ts';
import { approvalRows } from './refusal-rows-approvals.ts';
import { auditRows } from './refusal-rows-audit.ts';
import { eventRows } from './refusal-rows-events.ts';
import { liveRows } from './refusal-rows-live.ts';
import { namespaceRows } from './refusal-rows-namespaces.ts';
import { operationsRows } from './refusal-rows-operations.ts';
import { retryRows } from './refusal-rows-retry.ts';
import { runListRows } from './refusal-rows-run-list.ts';
import { sessionRows } from './refusal-rows-sessions.ts';
import { secretRows } from './refusal-rows-secrets.ts';
import { statisticsRows } from './refusal-rows-statistics.ts';
import { taskRows } from './refusal-rows-tasks.ts';
import { webhookRows } from './refusal-rows-webhooks.ts';
import { workerRows } from './refusal-rows-workers.ts';

/** A row of the table for an endpoint; `{x}` in a path stands for an existing id. */
export interface Row {
  readonly method: string;
  readonly path: string;
  /** Any one is enough; `admin` implies all. null: no token needed. */
  readonly scope: string | readonly string[] | null;
  /** Accepts a form instead of JSON; `test/api/access/oauth.test.ts` has its invalid requests. */
  readonly form?: true;
  /** Accepts any JSON as its body. */
  readonly takesAll?: true;
  /** A valid body; omitted if the endpoint takes none. */
  readonly body?: object;
  /** Required fields. */
  readonly required?: readonly string[];
  /** Invalid bodies, each with the field that the error names. */
  readonly faults?: readonly (readonly [field: string, value: unknown, named?: string])[];
  /** Invalid query parameters. */
  readonly queries?: readonly (readonly [query: string, field: string])[];
  /** The resource that a 404 names; omitted for paths without an id. */
  readonly resource?: string;
  /** A query that a valid request needs. */
  readonly needed?: string;
}

const secret = 'a secret of good length';
const plain = plainTask('00000000-0000-7000-8000-000000000000');
const taskFaults: Row['faults'] = [
  ['title', ''],
  ['title', long(201)],
  ['title', 5],
  ['title', null],
  ['description', long(2001)],
  ['schedule_kind', 'weekly'],
  ['schedule_expr', long(4001)],
  ['schedule_expr', '61 * * * *'],
  ['schedule_expr', '0 0 30 2 *'],
  ['timezone', 'Mars/Olympus'],
  ['payload', []],
  ['payload', {}, 'payload.pipeline'],
  ['payload', { pipeline: {} }, 'payload.pipeline'],
  ['payload', { pipeline: [{ uses: '' }] }, 'payload.pipeline.0.uses'],
  [
    'payload',
    {
      pipeline: [
        { id: 'a', uses: 'echo' },
        { id: 'a', uses: 'echo' },
      ],
    },
    'payload.pipeline.1.id',
  ],
  [
    'payload',
    { pipeline: [{ uses: 'sleep', with: { seconds: 'x' } }] },
    'payload.pipeline.0.with.seconds',
  ],
  ['created_by', 'me'],
  ['created_by', newId(0)],
  ['priority', 0],
  ['priority', 10],
  ['priority', 1.5],
  ['priority', '5'],
  ['max_retries', 51],
  ['max_retries', -1],
  ['backoff_strategy', 'random'],
  ['dedupe_key', ''],
  ['dedupe_key', 7],
  ['dedupe_key', long(201)],
  ['dedupe_window_seconds', 31_536_001],
  ['concurrency_limit', 0],
  ['max_runs', 0],
  ['starts_at', 'tomorrow'],
  ['ends_at', '2020-02-30T00:00:00Z'],
  ['tags', [''], 'tags.0'],
  ['tags', 'a'],
  ['status', 'paused'],
  ['constructor', {}],
];

/** Every endpoint with invalid values for each of its fields and parameters. */
export const refusalTable: readonly Row[] = [
  {
    method: 'POST',
    path: '/agents',
    scope: ['admin', 'namespace:admin'],
    body: { name: 'a', scopes: [] },
    required: ['name', 'scopes'],
    faults: [
      ['name', ''],
      ['name', long(101)],
      ['name', 1],
      ['scopes', 'admin'],
      ['scopes', ['Upper'], 'scopes.0'],
      ['scopes', ['a', 'a']],
      ['scopes', Array.from({ length: 101 }, (_, index) => `s${index}`)],
      ['webhook_url', 'ftp://a.example'],
      ['webhook_url', 'http://'],
      ['webhook_url', 'https://a b'],
      ['webhook_url', 'https://user:password@a.example/hook'],
      ['webhook_url', 'https://token@a.example/hook'],
      ['webhook_url', 5],
      ['extra', 1],
    ],
  },
  {
    method: 'GET',
    path: '/agents',
    scope: ['admin', 'namespace:admin', 'audit:read'],
    queries: [...pages, [`name_filter=${long(101)}`, 'name_filter']],
  },
  {
    method: 'GET',
    path: '/agents/{agent}',
    scope: [],
    resource: 'agent',
    queries: [['after=x', 'after']],
  },
  {
    method: 'PUT',
    path: '/agents/{agent}',
    scope: ['admin', 'namespace:admin'],
    resource: 'agent',
    body: { webhook_url: null },
    faults: [
      ['name', ''],
      ['scopes', [5], 'scopes.0'],
      ['id', 'x'],
    ],
  },
  {
    method: 'DELETE',
    path: '/agents/{agent}',
    scope: ['admin', 'namespace:admin'],
    resource: 'agent',
    queries: [['cancel_tasks=yes', 'cancel_tasks']],
  },
  {
    method: 'POST',
    path: '/agents/{agent}/credentials',
    scope: ['admin', 'namespace:admin'],
    resource: 'agent',
    body: { agent_secret: secret },
    faults: [
      ['agent_secret', 'short'],
      ['agent_secret', long(201)],
      ['agent_secret', 5],
      ['secret', secret],
    ],
  },
  {
    method: 'POST',
    path: '/agents/auth/token',
    scope: null,
    body: { agent_id: newId(0), agent_secret: secret },
    required: ['agent_id'],
    faults: [
      ['agent_id', 'x'],
      ['agent_secret', 5],
      ['password', 'x'],
    ],
  },
  { method: 'POST', path: '/oauth/token', scope: null, form: true },
  {
    method: 'POST',
    path: '/agents/auth/refresh',
    scope: null,
    body: { refresh_token: 'x' },
    required: ['refresh_token'],
    faults: [
      ['refresh_token', ''],
      ['refresh_token', 5],
      ['refresh_token', long(10_001)],
    ],
  },
  {
    method: 'POST',
    path: '/agents/auth/revoke',
    scope: null,
    body: { token: 'x' },
    required: ['token'],
    faults: [
      ['token', 5],
      ['refresh_token', ''],
    ],
  },
  {
    method: 'POST',
    path: '/tasks',
    scope: 'tasks:write',
    body: plain,
    required: ['title', 'description', 'schedule_kind', 'schedule_expr', 'payload', 'created_by'],
    faults: taskFaults,
  },
  {
    method: 'GET',
    path: '/tasks',
    scope: 'tasks:read',
    queries: [
      ...pages,
      ...cursors,
      ['status=done', 'status'],
      ['sort=priority', 'sort'],
      ['sort=p95&cursor=nonsense', 'cursor'],
      ['created_by=x', 'created_by'],
      ['schedule_kind=x', 'schedule_kind'],
      [`tag=${long(101)}`, 'tag'],
      ['secret=a-b', 'secret'],
    ],
  },
  {
    method: 'GET',
    path: '/tasks/{task}',
    scope: 'tasks:read',
    resource: 'task',
    queries: [['after=x', 'after']],
  },
  {
    method: 'PUT',
    path: '/tasks/{task}',
    scope: 'tasks:write',
    resource: 'task',
    body: { title: 'a' },
    faults: taskFaults,
  },
  {
    method: 'POST',
    path: '/tasks/{task}/run_now',
    scope: 'tasks:write',
    resource: 'task',
    queries: [
      ['wait=61', 'wait'],
      ['wait=-1', 'wait'],
      ['wait=long', 'wait'],
    ],
  },
  {
    method: 'POST',
    path: '/tasks/{task}/snooze',
    scope: 'tasks:write',
    resource: 'task',
    body: { delay_seconds: 5 },
    required: ['delay_seconds'],
    faults: [
      ['delay_seconds', 0],
      ['delay_seconds', 604_801],
      ['delay_seconds', 1.5],
      ['delay_seconds', '5'],
      ['reason', long(501)],
      ['reason', 5],
      ['until', 'x'],
    ],
  },
  {
    method: 'POST',
    path: '/tasks/{task}/pause',
    scope: 'tasks:write',
    resource: 'task',
    faults: [['reason', 'x']],
  },
  {
    method: 'POST',
    path: '/tasks/{task}/resume',
    scope: 'tasks:write',
    resource: 'task',
    queries: [['missed=some', 'missed']],
  },
  { method: 'POST', path: '/tasks/{task}/cancel', scope: 'tasks:write', resource: 'task' },
  {
    method: 'GET',
    path: '/tasks/{task}/explain',
    scope: 'tasks:read',
    resource: 'task',
    needed: 'at=2026-01-01',
    queries: [
      ['', 'at'],
      ['at=', 'at'],
      ['at=yesterday', 'at'],
      ['at=2026-02-30T00:00:00Z', 'at'],
      ['at=2026-01-01T00:00:00Z&at=2026-01-02T00:00:00Z', 'at'],
      [`at=${long(65)}`, 'at'],
    ],
  },
  {
    method: 'POST',
    path: '/schedules/preview',
    scope: 'tasks:read',
    body: { schedule_kind: 'cron', schedule_expr: '0 * * * *' },
    required: ['schedule_kind', 'schedule_expr'],
    faults: [
      ['schedule_kind', 'weekly'],
      ['schedule_expr', '61 * * * *'],
      ['schedule_expr', long(4001)],
      ['timezone', 'Mars/Olympus'],
      ['starts_at', 'soon'],
      ['ends_at', 5],
      ['max_runs', 0],
      ['task_id', 'x'],
      ['task_id', newId(0), 'schedule_kind'],
      ['from', 'today'],
      ['count', 0],
      ['count', 1001],
      ['count', '10'],
      ['title', 'x'],
    ],
  },
  {
    method: 'POST',
    path: '/tasks/{task}/backfill',
    scope: 'tasks:write',
    resource: 'task',
    body: { from: '2026-01-01T00:00:00Z', to: '2026-01-01T05:00:00Z', dry_run: true },
    required: ['from', 'to'],
    faults: [
      ['from', ''],
      ['from', 'yesterday'],
      ['from', 5],
      ['from', '2026-01-01T05:00:01Z'],
      ['from', '2020-01-01T00:00:00Z'],
      ['from', long(65)],
      ['to', '2026-02-30T00:00:00Z'],
      ['to', '2999-01-01T00:00:00Z'],
      ['to', null],
      ['dry_run', 'yes'],
      ['only', 'some'],
      ['concurrency', 0],
      ['concurrency', 101],
      ['concurrency', 1.5],
      ['priority', 1],
    ],
  },
  {
    method: 'GET',
    path: '/tasks/{task}/backfills',
    scope: 'tasks:read',
    resource: 'task',
    queries: [...pages, ...cursors],
  },
  {
    method: 'GET',
    path: '/backfills/{backfill}',
    scope: 'tasks:read',
    resource: 'backfill',
    queries: [['after=x', 'after']],
  },
  {
    method: 'POST',
    path: '/backfills/{backfill}/cancel',
    scope: 'tasks:write',
    resource: 'backfill',
    faults: [['reason', 'x']],
  },
  {
    method: 'GET',
    path: '/concurrency/{key}',
    scope: 'tasks:read',
    queries: [
      ['created_by=me', 'created_by'],
      ['created_by=', 'created_by'],
      ['after=nowhere', 'after'],
    ],
  },
  ...taskRows,
  ...runListRows,
  ...liveRows,
  { method: 'GET', path: '/runs/{run}', scope: 'runs:read', resource: 'run' },
  { method: 'POST', path: '/runs/{run}/cancel', scope: 'tasks:write', resource: 'run' },
  ...retryRows,
  ...sessionRows,
  ...statisticsRows,
  ...eventRows,
  ...namespaceRows,
  ...operationsRows,
  ...webhookRows,
  ...secretRows,
  ...approvalRows,
  ...workerRows,
  ...auditRows,
  ...agentRows,
];
