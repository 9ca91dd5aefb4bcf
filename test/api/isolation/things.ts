import { expect } from 'chai';
import { randomUUID } from 'node:crypto';
import { isUuid, newId } from '../../../domain/ids.ts';
import type { ApiClient, ReceivedResponse } from '../../support/api-client.ts';
import { found } from '../../support/signals.ts';
import { plainTask } from '../plain-task.ts';

/**
 * The things of an agent, by kind. Each value is unique in the whole service, so a leak shows anywhere. `mark` is part
 * of every name and of every payload.
 */
export interface Things {
  readonly namespace: string;
  readonly mark: string;
  /** In every payload, and in no name. */
  readonly secret: string;
  readonly agent: string;
  readonly agentName: string;
  readonly task: string;
  /** Listens to `topic`. */
  readonly eventTask: string;
  /** Needs `concurrencyKey`, which `keyRun` holds. */
  readonly keyTask: string;
  readonly keyRun: string;
  readonly run: string;
  readonly failedRun: string;
  readonly artifactRun: string;
  readonly artifact: string;
  /** Triggered by `eventId`. */
  readonly eventRun: string;
  readonly backfill: string;
  readonly approval: string;
  readonly approvalRun: string;
  readonly delivery: string;
  readonly apiKey: string;
  readonly secretName: string;
  readonly worker: string;
  readonly workerName: string;
  readonly workerTool: string;
  readonly job: string;
  readonly lease: string;
  readonly jobRun: string;
  readonly topic: string;
  readonly eventId: string;
  readonly concurrencyKey: string;
  readonly tag: string;
  readonly demoStream: string;
  readonly idempotencyKey: string;
  /** Of the request that created the task. */
  readonly correlation: string;
}

/** The owner of things, which creates them through the interface. */
export interface Owner {
  readonly id: string;
  readonly name: string;
  readonly client: ApiClient;
}

const HOUR = 3_600_000;

/**
 * Hourly, but next half an hour after the tests begin: a whole service fires by the real clock, and a run of its own
 * would change what these tests compare.
 */
export const FAR_CRON = `${(new Date().getUTCMinutes() + 30) % 60} * * * *`;

/** Things that never existed, of the same form as others. */
export function phantoms(like: Things): Things {
  const mark = newMark();
  const other = (value: string): string => {
    if (value.includes(like.mark)) return value.replaceAll(like.mark, mark);
    // The names of artifacts are hashes.
    return isUuid(value) ? newId(Date.now()) : value.split('').reverse().join('');
  };
  const entries = Object.entries(like).map(([name, value]) => [name, other(value as string)]);
  const namespace = `never-${mark}`;
  return { ...(Object.fromEntries(entries) as unknown as Things), mark, namespace };
}

/** Of a step that still waits when slow tests end. */
export const unhurried = { timeout_seconds: 3600 };

/** Random throughout: names with the same beginning would be suggested for each other. */
const newMark = (): string => `zq${randomUUID().replaceAll('-', '')}`;

/** Creates one thing of each kind. @param admin does what an agent cannot do for itself */
export async function makeThings(
  owner: Owner,
  namespace: string,
  admin: ApiClient,
): Promise<Things> {
  const mark = newMark();
  const { client, id: agent } = owner;
  const secret = newId(Date.now());
  const tag = `tag-${mark}`;
  const topic = `orders.${mark}`;
  const correlation = `request-${mark}`;
  const idempotencyKey = `key-${mark}`;
  const concurrencyKey = `slots-${mark}`;
  const taskOf = async (pipeline: readonly object[], more: object = {}): Promise<string> => {
    const body = {
      ...plainTask(agent),
      schedule_expr: FAR_CRON,
      title: `Title ${mark}`,
      description: `For ${mark}`,
      max_retries: 0,
      tags: [tag],
      payload: { pipeline, params: { mark, secret } },
      ...more,
    };
    const headers = { 'x-request-id': correlation };
    return ok(await client.post('/tasks', body, { headers })).textAt('id');
  };
  const runOf = async (task: string): Promise<string> =>
    ok(await client.post(`/tasks/${task}/run_now`)).textAt('details.run_id');
  const ended = (run: string, state: string): Promise<true> =>
    found(async () => ((await client.get(`/runs/${run}`)).at('state') === state ? true : null), {
      what: `run ${run} to be ${state}`,
    });

  const echo = { id: 'say', uses: 'echo', with: { text: secret } };
  const task = await taskOf([echo]);
  const run = await runOf(task);
  await ended(run, 'succeeded');

  const failedRun = await runOf(
    await taskOf([{ uses: 'fail', with: { message: `Broken ${mark}` } }]),
  );
  await ended(failedRun, 'failed');

  const large = 'x'.repeat(150_000);
  const big = { id: 'big', uses: 'echo', with: [secret, '${params.large}', '${params.large}'] };
  const artifactRun = await runOf(
    await taskOf([big], { payload: { pipeline: [big], params: { large, secret } } }),
  );
  await ended(artifactRun, 'succeeded');
  const artifact = (await client.get(`/runs/${artifactRun}`)).textAt('output.steps.big.artifact');

  const eventTask = await taskOf([echo], { schedule_kind: 'event', schedule_expr: topic });
  // With a second task, the payload has a stream of its own.
  const alsoTriggered = await taskOf([echo], { schedule_kind: 'event', schedule_expr: topic });
  const payload = { secret, padding: 'x'.repeat(2_000) };
  const event = { topic, payload, source_agent_id: agent };
  const published = ok(
    await client.post('/events', event, { headers: { 'idempotency-key': idempotencyKey } }),
  );
  const eventId = published.textAt('details.event_id');
  const eventRun = await found(
    async () =>
      (await client.get(`/runs?task_id=${eventTask}`)).at('items.0.id') as string | undefined,
    { what: 'the run that the event triggers' },
  );
  ok(await client.get(`/streams/payload-${eventId}`));
  ok(await client.post(`/tasks/${alsoTriggered}/cancel`));

  const sleeping = [{ uses: 'sleep', with: { seconds: 3600 } }];
  const keyTask = await taskOf(sleeping, { concurrency_key: concurrencyKey });
  const keyRun = await runOf(keyTask);
  const holding = async () => (await client.get(`/concurrency/${concurrencyKey}`)).at('holders.0');
  await found(holding, { what: 'a run that holds the key' });

  const ask = { id: 'ask', uses: 'approval', with: { message: `May I, ${secret}?` } };
  const approvalRun = await runOf(await taskOf([ask]));
  const approval = await found(
    async () =>
      (await client.get(`/approvals?run_id=${approvalRun}`)).at('items.0.id') as string | undefined,
    { what: 'the approval' },
  );

  const past = { from: iso(Date.now() - 3 * HOUR), to: iso(Date.now() - HOUR) };
  const asked = ok(await client.post(`/tasks/${task}/backfill`, past));
  const backfill = asked.textAt('details.backfill_id');
  const isOver = async () =>
    (await client.get(`/backfills/${backfill}`)).at('state') === 'completed' ? true : null;
  await found(isOver, { what: 'the end of the backfill' });

  const workerName = `worker-${mark}`;
  const workerTool = `tool.${mark}`;
  const tools = [{ name: workerTool, description: `Does ${mark}`, schema: {} }];
  const registered = ok(
    await client.post('/workers', { name: workerName, slots: 2, tools, labels: { mark } }),
  );
  const worker = registered.textAt('worker_id');
  const jobRun = await runOf(
    await taskOf([{ id: 'job', uses: workerTool, with: { secret }, ...unhurried }]),
  );
  const taken = await found(
    async () => {
      const polled = ok(await client.post(`/workers/${worker}/jobs?wait=1`));
      return polled.at('jobs.0') as { readonly job_id: string; readonly lease: string } | undefined;
    },
    { what: 'a job' },
  );

  ok(await admin.put(`/agents/${agent}`, { webhook_url: `http://127.0.0.1:9/${mark}` }));
  const test = ok(await admin.post(`/agents/${agent}/webhook-test`));
  const delivery = test.textAt('details.delivery_id');

  const key = await client.post(`/agents/${agent}/keys`, { name: `key of ${mark}` });
  const apiKey = ok(key).textAt('id');

  const secretName = `TOKEN_${mark}`;
  ok(await client.put(`/secrets/${secretName}`, { value: secret, allow_hosts: ['127.0.0.1'] }));

  const demoStream = `greetings-${mark}`;
  ok(await client.post(`/ext/events_demo/publish/${demoStream}`, { secret }));

  return {
    namespace,
    mark,
    secret,
    agent,
    agentName: owner.name,
    task,
    eventTask,
    keyTask,
    keyRun,
    run,
    failedRun,
    artifactRun,
    artifact,
    eventRun,
    backfill,
    approval,
    approvalRun,
    delivery,
    apiKey,
    secretName,
    worker,
    workerName,
    workerTool,
    job: taken.job_id,
    lease: taken.lease,
    jobRun,
    topic,
    eventId,
    concurrencyKey,
    tag,
    demoStream,
    idempotencyKey,
    correlation,
  };
}

const iso = (at: number): string => new Date(at).toISOString();

function ok(answer: ReceivedResponse): ReceivedResponse {
  expect(answer.status, answer.text).to.be.within(200, 299);
  return answer;
}
