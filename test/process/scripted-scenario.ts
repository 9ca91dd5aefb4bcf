import { expect } from 'chai';
import type { ReceivedResponse, ApiClient } from '../support/api-client.ts';
import { found } from '../support/signals.ts';
import type { Cluster } from './cluster.ts';

/** The result of a scenario, without ids and times: the same wherever it runs. */
export type ScenarioResult = Readonly<Record<string, unknown>>;

/** The longest wait for work to be done, in milliseconds. */
const LIMIT = { limitMs: 20_000 };

/**
 * Creates its own agent and tasks of all kinds, with runs by command, time and event, a failure, a pause and a
 * cancellation.
 */
export async function playScenario(cluster: Cluster): Promise<ScenarioResult> {
  const client = cluster.client();
  const owner = await newAgent(cluster);
  const create = async (title: string, fields: object): Promise<string> => {
    const body = { title, description: 'scripted', created_by: owner.id, ...fields };
    return ok(await owner.client.post('/tasks', body), 201).textAt('id');
  };
  const said = { pipeline: [{ id: 'say', uses: 'echo', with: { said: '${event.payload.text}' } }] };
  const sums = {
    pipeline: [
      { id: 'sum', uses: 'transform', with: { expression: 'sum(@)', input: [1, 2, 3] } },
      {
        id: 'tell',
        uses: 'events.publish',
        with: { topic: 'sums.done', payload: { text: '${steps.sum}' } },
      },
    ],
  };
  const fails = { pipeline: [{ uses: 'fail', with: { message: 'on purpose' } }] };
  const never = { schedule_kind: 'cron', schedule_expr: '0 0 0 29 2 *' };
  const onEvent = { schedule_kind: 'event', schedule_expr: 'sums.#', payload: said };
  const listener = await create('listens', onEvent);
  const byHand = await create('by hand', { ...never, payload: sums });
  const failing = await create('fails', {
    ...never,
    payload: fails,
    max_retries: 1,
    retry_delay_seconds: 0.1,
  });
  const twice = await create('twice', {
    schedule_kind: 'cron',
    schedule_expr: '* * * * * *',
    max_runs: 2,
    payload: { pipeline: [] },
  });
  const canceled = await create('canceled', { ...never, payload: sums });

  const ran = ok(await owner.client.post(`/tasks/${byHand}/run_now?wait=20`), 200);
  const failed = ok(await owner.client.post(`/tasks/${failing}/run_now?wait=20`), 200);
  const event = { topic: 'sums.by-hand', payload: { text: 'hello' }, source_agent_id: owner.id };
  const published = ok(await owner.client.post('/events', event), 202);
  const paused = ok(await owner.client.post(`/tasks/${listener}/pause`), 200);
  const unheard = ok(await owner.client.post('/events', event), 202);
  ok(await owner.client.post(`/tasks/${listener}/resume`), 200);
  ok(await owner.client.post(`/tasks/${canceled}/cancel`), 200);
  const refused = await owner.client.post(`/tasks/${canceled}/run_now`);
  const twiceRan = await endedRuns(client, twice, 2);
  const heard = await endedRuns(client, listener, 2);
  const tasks = ok(await client.get(`/tasks?created_by=${owner.id}`), 200);
  const shown = (tasks.json['items'] as readonly Readonly<Record<string, unknown>>[]).map(
    ({ title, status, exhausted }) => ({ title, status, exhausted }),
  );
  const stats = ok(await client.get(`/task/${failing}/stats`), 200).json;
  return {
    ran: runResult(ran.at('details.run')),
    failed: runResult(failed.at('details.run')),
    triggered: [published.at('details.triggered_tasks'), unheard.at('details.triggered_tasks')].map(
      (ids) => (ids as readonly string[]).map((id) => (id === listener ? 'listener' : id)),
    ),
    paused: [paused.at('details.old_status'), paused.at('details.new_status')],
    refused: [refused.status, refused.at('error')],
    twice: twiceRan.map(runResult),
    heard: heard.map(runResult).sort(byText),
    tasks: shown,
    stats: [stats['total_runs'], stats['failed_runs'], stats['failure_rate']],
  };
}

async function newAgent(
  cluster: Cluster,
): Promise<{ readonly id: string; readonly client: ApiClient }> {
  const admin = cluster.client();
  const name = 'the owner';
  const scopes = ['tasks:read', 'tasks:write', 'runs:read', 'events:publish'];
  const id = ok(await admin.post('/agents', { name, scopes }), 201).textAt('id');
  const secret = ok(await admin.post(`/agents/${id}/credentials`), 200).textAt('agent_secret');
  const answer = await admin.post('/agents/auth/token', { agent_id: id, agent_secret: secret });
  return { id, client: admin.as(ok(answer, 200).textAt('access_token')) };
}

/** Waits until so many runs of a task have ended, and returns them, oldest first. */
function endedRuns(
  client: ApiClient,
  taskId: string,
  count: number,
): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const what = `${count} runs of ${taskId} to end`;
  return found(
    async () => {
      const { json } = await client.get(`/runs?task_id=${taskId}&state=succeeded`);
      const items = json['items'] as readonly Readonly<Record<string, unknown>>[];
      return items.length >= count ? [...items].reverse() : undefined;
    },
    { ...LIMIT, what },
  );
}

/** The parts of a run that do not depend on time and place. */
function runResult(run: unknown): unknown {
  const { state, success, error, attempt, trigger, output } = run as Readonly<
    Record<string, unknown>
  >;
  return { state, success, error, attempt, trigger, output: withoutIds(output) };
}

function withoutIds(value: unknown): unknown {
  const text = JSON.stringify(value ?? null)
    .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '<id>')
    .replaceAll(/"\d{13}-\d+"/g, '"<stream id>"');
  return JSON.parse(text) as unknown;
}

const byText = (one: unknown, other: unknown): number =>
  JSON.stringify(one).localeCompare(JSON.stringify(other));

function ok(answer: ReceivedResponse, status: number): ReceivedResponse {
  expect(answer.status, answer.text).to.equal(status);
  return answer;
}
