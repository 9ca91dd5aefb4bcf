import type { Things } from './things.ts';

type Value = (things: Things) => string;
/** @param me id of the neighbour */
type Body = (things: Things, me: string) => unknown;

/**
 * What the parameters of paths mean. A parameter means the same wherever its name is used, unless a
 * row combines it with an endpoint.
 */
export const pathParameters: Readonly<Record<string, Value>> = {
  agent_id: ({ agent }) => agent,
  key_id: ({ apiKey }) => apiKey,
  delivery_id: ({ delivery }) => delivery,
  id: ({ task }) => task,
  task_id: ({ task }) => task,
  run_id: ({ run }) => run,
  'GET /runs/{run_id}/artifacts/{artifact} run_id': ({ artifactRun }) => artifactRun,
  'POST /runs/{run_id}/cancel run_id': ({ keyRun }) => keyRun,
  'POST /runs/{run_id}/retry run_id': ({ failedRun }) => failedRun,
  artifact: ({ artifact }) => artifact,
  backfill_id: ({ backfill }) => backfill,
  'GET /concurrency/{key} key': ({ concurrencyKey }) => concurrencyKey,
  'POST /projections/{name}/parked/{key}/retry key': ({ task }) => task,
  'POST /projections/{name}/parked/{key}/skip key': ({ task }) => task,
  worker_id: ({ worker }) => worker,
  job_id: ({ job }) => job,
  approval_id: ({ approval }) => approval,
  event_id: ({ eventId }) => eventId,
  // The token is the credential, so everybody who has it may use it.
  token: ({ mark }) => mark,
  'GET /streams/{stream} stream': ({ run }) => `run-${run}`,
  'POST /ext/events_demo/publish/{stream} stream': ({ demoStream }) => demoStream,
  'GET /ext/events_demo/subscribe/{stream} stream': ({ demoStream }) => demoStream,
  'GET /secrets/{name} name': ({ secretName }) => secretName,
  'PUT /secrets/{name} name': ({ secretName }) => secretName,
  'DELETE /secrets/{name} name': ({ secretName }) => secretName,
  'GET /ext/mcp_http/tools/{name}/schema name': ({ workerTool }) => workerTool,
  'DELETE /replays/{name} name': ({ task }) => task,
  'GET /namespaces/{name}/usage name': ({ namespace }) => namespace,
  'GET /namespaces/{name} name': ({ namespace }) => namespace,
  'PUT /namespaces/{name} name': ({ namespace }) => namespace,
  'DELETE /namespaces/{name} name': ({ namespace }) => namespace,
};

/** What the parameters of queries mean, if they can name a thing: everywhere, or for one endpoint. */
export const queryParameters: Readonly<Record<string, Value>> = {
  task_id: ({ task }) => task,
  run_id: ({ approvalRun }) => approvalRun,
  parent_run_id: ({ run }) => run,
  id: ({ run }) => run,
  input: ({ mark }) => mark,
  event_id: ({ eventId }) => eventId,
  created_by: ({ agent }) => agent,
  actor: ({ agent }) => agent,
  stream: ({ task }) => `task-${task}`,
  correlation_id: ({ correlation }) => correlation,
  tag: ({ tag }) => tag,
  secret: ({ secretName }) => secretName,
  search: ({ mark }) => mark,
  name_filter: ({ agentName }) => agentName,
  topic: ({ topic }) => topic,
  matching: ({ topic }) => topic,
  prefix: ({ run }) => `run-${run}`,
  ids: ({ task }) => task,
  'GET /ext/webui/api/states ids': ({ run }) => run,
};

/** Parameters of queries that name nothing: times, pages, states. Cursors and positions come from earlier responses. */
export const neutralParameters: ReadonlySet<string> = new Set([
  ...['limit', 'offset', 'cursor', 'after', 'count', 'days', 'direction', 'format', 'end_mark'],
  ...['as_of', 'at', 'since', 'until', 'from', 'to', 'start_time', 'end_time', 'max_age_hours'],
  ...[
    'state',
    'status',
    'type',
    'kind',
    'outcome',
    'success',
    'trigger',
    'schedule_kind',
    'source',
    'hours',
    'interval',
    'sort',
    'timezone',
  ],
  ...[
    'code',
    'iss',
    'error',
    'error_group',
    'runs',
    'wait',
    'max',
    'missed',
    'dry_run',
    'include_errors',
    'step',
    'cancel_tasks',
    'scope_filter',
    'sort',
    'by',
    'timezone',
  ],
  // Replays have no namespace; what they show does.
  'view',
  // Tried separately, wherever it is accepted.
  'namespace',
]);

/** Queries without which a request is invalid. */
export const neededQueries: Readonly<Record<string, string>> = {
  'GET /tasks/{id}/explain': 'at=2026-01-01T00:00:00Z',
  'GET /tasks/{id}/fires': 'from=2026-01-01&to=2026-12-31',
  'GET /tasks/{id}/calendar': 'from=2026-01-01&to=2026-01-31',
  'DELETE /stream/cleanup': 'max_age_hours=8760',
  'DELETE /events/stream/cleanup': 'max_age_hours=8760',
};

const listening = (topic: string) => ({
  title: 'Listens',
  description: '-',
  schedule_kind: 'event',
  schedule_expr: topic,
  payload: { pipeline: [{ uses: 'echo' }] },
});
const mcp = (name: string, given: object) => ({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name, arguments: given },
});
const empty: Body = () => ({});

/** A body for every endpoint that takes one, which names things where it can. */
export const bodies: Readonly<Record<string, Body>> = {
  'POST /auth/session': ({ agent }) => ({
    agent_id: agent,
    agent_secret: 'a secret that was guessed',
  }),
  'POST /agents/{agent_id}/keys': () => ({ name: 'taken' }),
  'POST /agents/auth/token': ({ agent }) => ({
    agent_id: agent,
    agent_secret: 'a secret that was guessed',
  }),
  'POST /agents/auth/refresh': ({ mark }) => ({ refresh_token: mark }),
  'POST /agents/auth/revoke': ({ mark }) => ({ token: mark }),
  // Refused, as the neighbour cannot give it: an agent of this name would be in the neighbour's own lists.
  'POST /agents': ({ agentName }) => ({ name: agentName, scopes: ['admin'] }),
  'PUT /agents/{agent_id}': () => ({ webhook_url: null }),
  'POST /agents/{agent_id}/credentials': empty,
  'POST /namespaces': ({ namespace }) => ({ name: namespace }),
  'PUT /namespaces/{name}': () => ({ description: 'Taken over' }),
  'POST /tasks': ({ agent, topic }) => ({ ...listening(topic), created_by: agent }),
  // Refused: a secret of this name would be in the neighbour's own lists.
  'PUT /secrets/{name}': ({ task }) => ({
    value: 'x',
    allow_hosts: ['no host'],
    allow_tasks: [task],
  }),
  'PUT /tasks/{id}': () => ({ title: 'Taken over' }),
  'POST /tasks/check': ({ task }) => ({ task_id: task, title: 'Taken over' }),
  'POST /tasks/{id}/run_now': empty,
  'POST /tasks/{id}/snooze': () => ({ delay_seconds: 5 }),
  'POST /schedules/preview': ({ task }) => ({ task_id: task }),
  'POST /tasks/{id}/backfill': () => ({
    from: '2026-01-01T00:00:00Z',
    to: '2026-01-01T05:00:00Z',
    dry_run: true,
  }),
  'POST /runs/{run_id}/retry': empty,
  'POST /runs/redrive': ({ task }) => ({ task_id: task, dry_run: true }),
  'POST /runs/cancel': ({ task }) => ({ task_id: task, dry_run: true }),
  // The same tool is tried separately, as it exists from then on.
  'POST /workers': () => ({
    name: 'another',
    slots: 1,
    tools: [{ name: 'another.tool', description: '-', schema: {} }],
  }),
  'POST /jobs/{job_id}/heartbeat': ({ lease }) => ({ lease, progress: 0.5 }),
  'POST /jobs/{job_id}/complete': ({ lease }) => ({ lease, result: 'stolen' }),
  'POST /jobs/{job_id}/fail': ({ lease }) => ({ lease, error: 'stolen', retryable: false }),
  'POST /workers/{worker_id}/results': ({ job, lease }) => ({
    results: [{ job_id: job, lease, result: 'stolen' }],
  }),
  'POST /approvals/{approval_id}/approve': empty,
  'POST /approvals/{approval_id}/reject': empty,
  'POST /callbacks/{token}': empty,
  'POST /callbacks/{token}/fail': () => ({ error: 'x' }),
  'POST /events': ({ agent, topic }) => ({ topic, payload: {}, source_agent_id: agent }),
  'POST /replays': ({ mark }) => ({ name: mark, until: 'x' }),
  'POST /ext/webui/api/tasks': ({ agent, topic }) => ({ ...listening(topic), created_by: agent }),
  'POST /ext/webui/api/preview': ({ task }) => ({ task_id: task }),
  'POST /ext/webui/api/check': ({ task }) => ({ task_id: task, title: 'Taken over' }),
  'POST /ext/events_demo/publish/{stream}': empty,
  'POST /ext/mcp_http/invoke': ({ task }) => ({ tool: 'get_task', parameters: { task_id: task } }),
  'POST /ext/mcp_http/mcp': ({ task }) => mcp('get_task', { task_id: task }),
};

/** Further bodies of endpoints whose fields can name things in more than one way. */
export const furtherBodies: readonly (readonly [string, Body])[] = [
  ['POST /runs/redrive', ({ agent }) => ({ created_by: agent, dry_run: true })],
  ['POST /runs/redrive', ({ failedRun }) => ({ run_ids: [failedRun] })],
  ['POST /runs/cancel', ({ agent }) => ({ created_by: agent, dry_run: true })],
  ['POST /runs/cancel', ({ keyRun }) => ({ run_ids: [keyRun] })],
  [
    'POST /tasks',
    ({ workerTool }, me) => ({
      ...listening('x'),
      created_by: me,
      payload: { pipeline: [{ uses: workerTool }] },
    }),
  ],
  ['POST /ext/mcp_http/invoke', ({ workerTool }) => ({ tool: workerTool, parameters: {} })],
  ['POST /ext/mcp_http/mcp', ({ workerTool }) => mcp(workerTool, {})],
  ['POST /ext/mcp_http/mcp', () => ({ jsonrpc: '2.0', id: 1, method: 'tools/list' })],
];

/** Endpoints whose body names nothing, because they are about the whole service. */
export const ofTheService: ReadonlySet<string> = new Set([
  'POST /operations/hold',
  'POST /operations/release',
  'POST /projections/{name}/rebuild',
  'POST /projections/{name}/switch',
  'POST /projections/{name}/pause',
  'POST /projections/{name}/resume',
  'POST /projections/{name}/cancel',
  'POST /projections/{name}/rollback',
]);

/** Parameters of paths that name nothing of an agent, each with the path before it and a value. */
export const fixedParameters: Readonly<Record<string, string>> = {
  '/projections/:name': 'tasks',
  '/ext/:extension_id': 'webui',
};
