import { toIso } from '../../../domain/clock.ts';
import { namespaceField } from '../../../domain/namespaces/namespace.ts';
import { handle } from '../../../domain/handle.ts';
import { argumentCheck } from '../../../domain/pipeline/arguments.ts';
import { streams } from '../../../domain/streams.ts';
import { removeWorker, workerFold } from '../../../domain/workers/worker.ts';
import type { Issue } from '../../../domain/errors.ts';
import type { WorkerEvent } from '../../../domain/events/catalogue.ts';
import type { Filter } from '../../../projections/read-model.ts';
import { workersProjection, type WorkerDocument } from '../../../projections/views/workers.ts';
import { within } from '../../../projections/reach.ts';
import type { HeldJob } from '../../../scheduler/coordination.ts';
import type { ToolSchemas } from '../../dependencies.ts';
import { createdId, endpoint, success, type Endpoint } from '../../endpoint.ts';
import { HttpError, badRequest } from '../../errors.ts';
import { RegisterWorker, WorkerQuery } from '../../schemas/worker-schemas.ts';
import {
  WorkerDrained,
  WorkerPage,
  WorkerRegistered,
} from '../../schemas/response-schemas-workers.ts';
import { actorName } from '../agent-names.ts';
import { listPage } from '../listing.ts';
import { drainableWorkerInPath, isOperator } from './worker-lookup.ts';

const scopes = ['jobs:work'] as const;

const register = endpoint('POST /workers', {
  operationId: 'registerWorker',
  summary: 'Registers a worker; it replaces an earlier worker of the agent with the same name',
  description:
    'All pipelines of the same namespace can use its tools. New tasks are checked by the latest registered schema of a tool.',
  scopes,
  body: RegisterWorker,
  idempotent: true,
  responses: { 201: WorkerRegistered },
  refusals: ['conflict'],
  async handle(call) {
    const { dependencies, body, context, caller } = call;
    if (caller === null) throw new Error('the endpoint needs a token');
    const { store, workers, jobs, settings, tools } = dependencies;
    checkTools(body.tools, tools);
    const { name, slots, labels = {} } = body;
    const id = createdId('worker', call);
    const agent_id = caller.agentId;
    const place = namespaceField(caller.namespace);
    const data = { worker_id: id, agent_id, name, tools: body.tools, slots, labels, ...place };
    const registered: WorkerEvent = { type: 'WorkerRegistered', data };
    const stream = streams.worker(agent_id, name);
    const decide = () => [registered];
    const handled = await handle({ store, stream, fold: workerFold, decide, context });
    const { state, position } = handled;
    if (state !== null && position !== null) workers.learn(stream, state, position);
    jobs.note(id);
    const { jobLeaseSeconds: lease_seconds, jobHeartbeatSeconds: heartbeat_seconds } = settings;
    return { status: 201, body: { worker_id: id, lease_seconds, heartbeat_seconds }, position };
  },
});

const list = endpoint('GET /workers', {
  operationId: 'listWorkers',
  summary: 'Lists workers with their tools, jobs and last sign of life, newest first',
  description:
    "With the scope `ops`, it lists all workers of the namespace, otherwise only the caller's own. Each name belongs to one worker at a time.",
  scopes: ['jobs:work', 'ops'],
  query: WorkerQuery,
  reads: [workersProjection],
  responses: { 200: WorkerPage },
  async handle(call) {
    const { dependencies, query, caller } = call;
    const { readModel, jobs, clock } = dependencies;
    const { state } = query;
    const filters: Filter[] = [...within(call.reach), { field: 'state', op: 'eq', value: state }];
    if (!isOperator(call)) {
      filters.push({ field: 'agent_id', op: 'eq', value: caller?.agentId ?? '' });
    }
    const { held, ago } = await jobs.present();
    const now = clock.now();
    const sort = [{ field: 'registered_at', direction: 'descending' }] as const;
    return listPage(readModel, workersProjection, { filters, sort }, query, async (worker) =>
      showWorker(worker, {
        held: heldBy(held, worker.id),
        ago: ago.get(worker.id),
        now,
        agent_name: await actorName(dependencies, worker.agent_id),
      }),
    );
  },
});

const drain = endpoint('DELETE /workers/:worker_id', {
  operationId: 'drainWorker',
  summary: 'Drains a worker: it gets no more jobs, but may complete its open ones',
  description:
    "With the scope `ops`, this works for any worker of the namespace, otherwise only for the caller's own.",
  scopes: ['jobs:work', 'ops'],
  idempotent: true,
  responses: { 200: WorkerDrained },
  refusals: ['conflict'],
  async handle(call) {
    const { dependencies, context } = call;
    const { store, workers, jobs } = dependencies;
    const { id, agent_id, name } = await drainableWorkerInPath(call);
    const stream = streams.worker(agent_id, name);
    const handled = await handle({
      store,
      stream,
      fold: workerFold,
      decide: (state) => removeWorker(state, id, 'drained'),
      context,
    });
    const { state, position } = handled;
    if (state !== null && position !== null) workers.learn(stream, state, position);
    const { held } = await jobs.present();
    const left = heldBy(held, id).length;
    return success('the worker gets no more jobs', { worker_id: id, jobs: left }, position);
  },
});

export const workerEndpoints: readonly Endpoint[] = [register, list, drain];

/** @throws HttpError 400 for an invalid schema or a repeated name, 409 for a tool of the service or an extension */
function checkTools(offered: RegisterWorker['tools'], tools: ToolSchemas): void {
  const issues: Issue[] = [];
  const seen = new Set<string>();
  for (const [index, { name, schema }] of offered.entries()) {
    if (seen.has(name)) issues.push({ field: `tools.${index}.name`, issue: `${name} is repeated` });
    seen.add(name);
    const fault = faultOf(schema);
    if (fault !== null) issues.push({ field: `tools.${index}.schema`, issue: fault });
  }
  const [first, ...rest] = issues;
  if (first !== undefined) throw badRequest([first, ...rest]);
  const own = offered.find(({ name }) => tools.isOwn(name));
  if (own === undefined) return;
  const message = `${own.name} is a tool of the service or of an extension; choose another name`;
  throw new HttpError('conflict', message, { tool: own.name });
}

function faultOf(schema: object): string | null {
  try {
    argumentCheck(schema);
    return null;
  } catch (error) {
    return `is not a valid JSON schema: ${error instanceof Error ? error.message : String(error)}`;
  }
}

const heldBy = (held: readonly HeldJob[], id: string): readonly HeldJob[] =>
  held.filter(({ holder }) => holder.worker === id);

function showWorker(
  worker: WorkerDocument,
  known: {
    readonly held: readonly HeldJob[];
    readonly ago: number | undefined;
    readonly now: number;
    readonly agent_name: string | null;
  },
): object {
  const { id, agent_id, name, state, tools, slots, labels, registered_at, ended_at } = worker;
  const { held, ago, now, agent_name } = known;
  const jobs = held.map(({ job: job_id, holder: { run: run_id }, remaining }) => {
    return { job_id, run_id, leased_until: toIso(Math.round(now + remaining)) };
  });
  const last_seen_at = ago === undefined ? null : toIso(Math.round(now - ago));
  const shown = { id, agent_id, agent_name, name, state, tools, slots, labels };
  return { ...shown, registered_at, ended_at, last_seen_at, jobs };
}
