import type { DataOf, EventType } from '../../../domain/events/catalogue.ts';
import { signInSamples } from './sign-in-samples.ts';
import { accessSamples } from './access-samples.ts';
import { backfillSamples } from './backfill-samples.ts';
import { namespaceSamples } from './namespace-samples.ts';
import { retentionSamples } from './retention-samples.ts';
import { secretSamples } from './secret-samples.ts';
import { topicSamples } from './topic-samples.ts';
import { workerSamples } from './worker-samples.ts';
import { definition, failure, request, stepEnd, success } from '../../projections/recorded.ts';

const at = '2026-03-02T09:00:00.000Z';
const asked = {
  task_id: 'task-1',
  task_revision: 0,
  created_by: 'agent-1',
  trigger: 'schedule',
  scheduled_for: at,
  priority: 5,
} as const;
const beneficiary = { run_id: 'run-1', task_id: 'task-1', trigger: 'manual' } as const;
const key: DataOf<'KeyHeld'> = {
  run_id: 'run-1',
  kind: 'concurrency',
  key: 'k',
  owner: 'agent-1',
  holders: [{ ...beneficiary, since: at, limit: 1, attempt: 1 }],
  waiters: [{ ...beneficiary, priority: 5, since: at, waiting_since: at, limit: 1 }],
  used: { ...beneficiary, at, since: at },
};
const text = 'ä€😀 \u2028 "quoted" \\ \ud800';

const id = '0197f3a0-0000-7000-8000-000000000001';

const suspension = (
  waits_for: DataOf<'RunStepSuspended'>['waits_for'],
  more: Partial<DataOf<'RunStepSuspended'>> = {},
): DataOf<'RunStepSuspended'> => {
  const base = { step: 'one', wait_id: id, task_id: 'task-1', attempt: 1 };
  return { ...base, waits_for, since: at, until: at, ...more };
};

/** At least one example of the data of each type of event, including optional fields and odd values. */
export const samples: { readonly [T in EventType]: readonly DataOf<T>[] } = {
  AgentRegistered: [
    { name: text, scopes: ['admin'], webhook_url: 'https://a.example/hook' },
    { name: 'x', scopes: [], webhook_url: null },
  ],
  AgentUpdated: [{ changes: { name: 'y' } }, { changes: { scopes: [], webhook_url: null } }],
  AgentCredentialsSet: [{ secret_hash: 'scrypt$…' }],
  WebhookSecretRotated: [{ version: 2 }],
  WebhookScheduled: [
    {
      agent_id: 'agent-1',
      event_id: 'event-1',
      task_id: 'task-1',
      run_id: null,
      payload: { type: 'task.paused', timestamp: at, data: { task_id: 'task-1', reason: text } },
    },
    {
      agent_id: 'agent-1',
      event_id: null,
      task_id: null,
      run_id: null,
      payload: { type: 'webhook.test', timestamp: at, data: {} },
    },
  ],
  WebhookRepeated: [{}],
  WebhookDelivered: [
    {
      attempt: 1,
      secret_version: 0,
      took_ms: 5,
      url: 'https://a.example',
      status: 204,
      answer: '',
    },
  ],
  WebhookFailed: [
    {
      attempt: 1,
      secret_version: 2,
      took_ms: 5,
      url: 'https://a.example',
      status: 500,
      error: text,
      answer: text,
      retry_at: at,
      end: null,
    },
    {
      attempt: 2,
      secret_version: 0,
      took_ms: 0,
      url: null,
      status: null,
      error: 'x',
      answer: null,
      retry_at: null,
      end: 'no_url',
    },
  ],
  AgentRemoved: [{}],
  NameReserved: [{ name: text, agent_id: 'agent-1' }],
  NameReleased: [{ name: text, agent_id: 'agent-1' }],
  Abandoned: [{ reservation: 'agentname-x' }],
  AdminWithdrawn: [
    { withdrawals: [] },
    { withdrawals: [{ agent_id: 'a', revision: 3, since: at }] },
  ],
  ...signInSamples(at, text),
  TaskCreated: [
    { definition: definition(), anchor: at, next_fire_at: at },
    {
      definition: definition({
        schedule_kind: 'event',
        schedule_expr: null,
        payload: { pipeline: [{ uses: 'echo', with: { text, deep: [{ a: null }] } }] },
        tags: ['a', 'b'],
        timeout_seconds: 0.5,
        params_schema: { type: 'object', properties: { text: { type: 'string' } } },
      }),
      anchor: at,
      next_fire_at: null,
    },
  ],
  TaskUpdated: [
    {
      changes: { title: text, dedupe_key: null },
      rescheduled: false,
      anchor: at,
      next_fire_at: null,
    },
  ],
  TaskPaused: [{ by_failures: true }, { by_failures: false, cause: 'scope_lost' }],
  TaskResumed: [{ missed: 'all', next_fire_at: null }],
  TaskSnoozed: [{ delay_seconds: 60, next_fire_at: at, next_run_at: at }],
  TaskCanceled: [{}],
  Fired: [{ nominal: at, run_id: 'run-1', next_fire_at: at, task_revision: 0, fire_count: 1 }],
  FiresSkipped: [
    {
      reason: 'missed',
      from: at,
      to: at,
      count: 1,
      next_fire_at: null,
      task_revision: 0,
      fire_count: 0,
    },
  ],
  NextFireCorrected: [{ next_fire_at: at, tz_version: '2026a', task_revision: 0, fire_count: 0 }],
  RunRequested: [
    request(),
    request({
      trigger: 'event',
      scheduled_for: null,
      event: {
        id: 'event-1',
        topic: 'a.b',
        payload: { text, list: [1, null, { x: true }] },
        source_agent_id: 'agent-1',
        published_at: at,
      },
      retry_of: 'run-0',
      prior_steps: [stepEnd('one', { result: null })],
    }),
    request({
      trigger: 'event',
      scheduled_for: null,
      event: { id: 'event-1', topic: 'a.b', source_agent_id: 'agent-1', published_at: at },
    }),
    request({ retry_of: 'run-0', prior_results: { run_id: 'run-0', steps: 12 } }),
    request({ trigger: 'manual', scheduled_for: null, params: { limit: 5, deep: { text } } }),
    request({ trigger: 'manual', parent: { run_id: 'run-0', step: 'one' } }),
  ],
  RunSkipped: [
    { ...asked, reason: 'overlap', because_of: 'run-0' },
    { ...asked, reason: 'overlap', because_of: 'run-0', retry_of: 'run-1' },
    { ...asked, reason: 'overlap', because_of: 'run-0', params: { limit: 5 } },
    { ...asked, reason: 'overlap', because_of: 'run-0', parent: { run_id: 'run-1', step: 'one' } },
  ],
  RunStarted: [{ worker: 'w', attempt: 1, leased_until: at }],
  RunStepCompleted: [
    stepEnd('one', {
      log: [{ at, level: 'info', message: text, step: 'one', data: { n: 1.5e-9 } }],
    }),
    stepEnd('two[0]', { status: 'failed', result: null, error: text }),
    stepEnd('three', { arguments_hash: 'ab', now: at }),
  ],
  RunStepSuspended: [
    suspension({ kind: 'timer', seconds: 5 }, { arguments_hash: 'ab' }),
    suspension({ kind: 'event', topic: 'orders.*', if: 'event.payload.paid', since: 'run' }),
    suspension({ kind: 'approval', message: text, approvers: ['scope:ops'], on_timeout: 'fail' }),
    suspension({ kind: 'run', run_id: id, task_id: id }),
    suspension({ kind: 'callback', token_hashes: ['ab'], calling: true }, { release_key: true }),
    suspension(
      {
        kind: 'job',
        tool: 'emails.send',
        arguments: { to: text },
        labels: { zone: 'eu' },
        timeout_seconds: 30,
        priority: 5,
        not_before: at,
      },
      { tries: 2, log: [{ at, level: 'info', message: text, step: 'one' }] },
    ),
  ],
  RunStepResumed: [
    { step: 'one', wait_id: id, by: { kind: 'timer' }, result: { slept_seconds: 5 } },
    { step: 'one', wait_id: id, by: { kind: 'approval', agent_id: id }, error: text },
    {
      step: 'one',
      wait_id: id,
      by: { kind: 'job', id, agent_id: id },
      error: text,
      retryable: true,
      log: [{ at, level: 'info', message: text, step: 'one' }],
    },
  ],
  RunStepProgressed: [
    { step: 'one', wait_id: id, progress: 0.5 },
    { step: 'one', wait_id: id, log: [{ at, level: 'info', message: text, step: 'one' }] },
  ],
  RunReleased: [{ worker: 'w' }],
  RunInterrupted: [
    { worker: 'w', cause: 'lease_expired' },
    { worker: 'w', cause: 'drained' },
  ],
  RunAttemptFailed: [{ attempt: 1, error: text, step: null, retry_at: at }],
  RunSucceeded: [success({ steps: [stepEnd('one')], output: { summary: { total_steps: 1 } } })],
  RunFailed: [failure({ step: 'one' })],
  RunRetried: [
    { run_id: 'run-1', from: 'start' },
    { run_id: 'run-1', from: 'failed_step', step: 'one' },
  ],
  RunCancelRequested: [{}],
  RunCanceled: [{ attempt: 0 }, { attempt: 1, output: { summary: { total_steps: 1 } } }],
  ...backfillSamples(at),
  KeyHeld: [key, { ...key, holders: [], waiters: [], used: null }],
  KeyWaited: [key],
  KeyReleased: [key],
  KeyUsed: [{ ...key, kind: 'dedupe' }],
  StreamEntryAdded: [{ data: { text } }, { data: null }],
  ImportBegun: [{ export_id: 'export-1', events: 0 }],
  ImportCompleted: [{ export_id: 'export-1', events: 3 }],
  ...namespaceSamples,
  OperationsHeld: [{ reason: text }],
  OperationsReleased: [{ missed: null }, { missed: 'latest' }],
  ProjectionRebuildRequested: [
    { schema: 1, version: 2, rate: null, switch: 'auto' },
    { schema: 1, version: 2, rate: 0.5, switch: 'manual' },
  ],
  ProjectionRebuildPaused: [{ schema: 1, version: 2 }],
  ProjectionRebuildResumed: [{ schema: 1, version: 2 }],
  ProjectionRebuildCanceled: [{ schema: 1, version: 2 }],
  ProjectionRebuildFailed: [{ schema: 1, version: 2, error: text }],
  ProjectionRebuildReady: [
    { schema: 1, version: 2, comparison: null },
    {
      schema: 1,
      version: 2,
      comparison: {
        documents_before: 2,
        documents_after: 1,
        compared: 2,
        different: 1,
        complete: true,
        first: [{ key: 'a', difference: 'only_before', fields: [] }],
      },
    },
  ],
  ProjectionSwitchRequested: [{ schema: 1, version: 2 }],
  ProjectionSwitched: [
    { schema: 1, version: 2, before: 1 },
    { schema: 1, version: 2, before: null },
  ],
  ParkedKeyOrdered: [{ schema: 1, version: 2, key: 'a', order: 'retry' }],
  ProjectionShapeDiscarded: [{ schema: 1, version: 4 }],
  ParkedEventSkipped: [
    {
      schema: 1,
      version: 2,
      key: 'a',
      stream: 'run-a',
      revision: 1,
      position: '01',
      event_type: 'RunStarted',
      error: text,
    },
    {
      schema: 1,
      version: 2,
      key: 'a',
      stream: 'run-a',
      revision: null,
      position: '01',
      event_type: 'RunStarted',
      error: text,
    },
  ],
  ParkedKeySettled: [
    { schema: 1, version: 2, key: 'a', error: null },
    { schema: 1, version: 2, key: 'a', error: text },
  ],
  ReplayRequested: [
    {
      name: 'friday',
      version: 1,
      until: '01',
      at,
      views: ['runs', 'tasks'],
      rate: null,
      kept_until: at,
    },
    { name: 'a_1', version: 2, until: '01', at, views: ['runs'], rate: 0.5, kept_until: at },
  ],
  ReplayReady: [{ name: 'friday', version: 1, documents: { runs: 5, tasks: 0 } }],
  ReplayFailed: [{ name: 'friday', version: 1, error: text }],
  ReplayDropRequested: [{ name: 'friday', version: 1 }],
  ReplayDropped: [
    { name: 'friday', version: 1, cause: 'asked' },
    { name: 'friday', version: 1, cause: 'expired' },
  ],
  RunRemoved: [{}, { started: { task_id: 'task-1', at } }, { waits: ['w'], artifact_bytes: 7 }],
  WebhookRemoved: [{}],
  RecordsRemoved: [
    {
      kind: 'runs',
      records: 2,
      events: 6,
      first_position: '01',
      last_position: '09',
      older_than: at,
      streams: [{ stream: 'run-1', before: 3 }],
      audited: ['01'],
    },
  ],
  ...retentionSamples(id, text),
  CommandReceived: [
    { agent_id: 'a', request_hash: 'h', method: 'POST', path: '/tasks', expires_at: at },
  ],
  CommandAnswered: [{ status: 201, body: { id: 'x' }, headers: { etag: '"0"' } }],
  CommandRefused: [
    {
      agent_id: 'a',
      action: 'POST /tasks/{id}/pause',
      path: '/tasks/1/pause',
      status: 403,
      code: 'forbidden',
      count: 1,
      first_at: at,
      last_at: at,
    },
    {
      agent_id: 'a',
      action: 'POST /tasks',
      path: null,
      status: 409,
      code: 'conflict',
      count: 70,
      first_at: at,
      last_at: at,
    },
  ],
  ToolCalled: [
    {
      agent_id: 'a',
      tool: 'http.request',
      outcome: 'done',
      code: null,
      count: 1,
      first_at: at,
      last_at: at,
    },
    {
      agent_id: 'a',
      tool: 'sleep',
      outcome: 'refused',
      code: 'unavailable',
      count: 70,
      first_at: at,
      last_at: at,
    },
  ],
  AuditRead: [{ agent_id: 'a', action: 'GET /audit', asked: { actor: 'b', limit: '50' } }],
  ...workerSamples(id),
  ...accessSamples(at),
  ...secretSamples(id),
  ...topicSamples(id, at, text),
};
