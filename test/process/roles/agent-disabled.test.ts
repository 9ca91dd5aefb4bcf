import { expect } from 'chai';
import type { ApiClient } from '../../support/api-client.ts';
import { EventStream } from '../../support/event-stream.ts';
import { buildService } from '../../support/service-process.ts';
import { eventually, found } from '../../support/signals.ts';
import {
  makeTemporaryDirectory,
  type TemporaryDirectory,
} from '../../support/temporary-directory.ts';
import { Cluster } from '../cluster.ts';
import { Ledger } from '../ledger.ts';
import { StepServer } from '../step-server.ts';

/** The documented limit of a second, plus an allowance for a machine that is busy with other tests. Milliseconds. */
const LIMIT = 3_000;

/** A larger allowance where a test measures when it learned of something. Milliseconds. */
const SEEN_LIMIT = 10_000;

const scopes = ['tasks:read', 'tasks:write', 'runs:read', 'jobs:work'];

describe('an agent that is disabled at one process', function () {
  this.timeout(120_000);
  let directory: TemporaryDirectory;
  let cluster: Cluster;
  let server: StepServer;
  /** The admin, at the process that disables the agent. */
  let admin: ApiClient;
  /** The agent at the other process, by its token and by its API key. */
  let agent: ApiClient;
  let key: ApiClient;
  let id: string;
  let disabledAt: number;
  let live: EventStream;
  /** Its task that fires each second, and its run that a server keeps busy. */
  let ticking: string;
  let heldRun: string;
  let pendingPoll: Promise<unknown>;

  const create = async (client: ApiClient, owner: string, fields: object): Promise<string> => {
    const made = await client.post('/tasks', {
      title: 'work',
      description: 'of a test',
      created_by: owner,
      max_retries: 0,
      ...fields,
    });
    expect(made.status, made.text).to.equal(201);
    return made.textAt('id');
  };
  const eachSecond = {
    schedule_kind: 'cron',
    schedule_expr: '* * * * * *',
    payload: { pipeline: [{ uses: 'echo', with: {} }] },
  };
  const byHand = (pipeline: readonly object[]) => ({
    schedule_kind: 'event',
    schedule_expr: 'never.published',
    payload: { pipeline },
  });
  const ledger = (): Ledger => Ledger.read(directory.path);
  const runsOf = (task: string) =>
    ledger()
      .runs()
      .filter(({ request }) => request.data.task_id === task);
  const startsOf = (task: string) =>
    runsOf(task).flatMap(({ events }) => events.filter(({ type }) => type === 'RunStarted'));
  const register = async (client: ApiClient, name: string): Promise<string> => {
    const tools = [{ name: 'mail.send', description: 'sends', schema: {} }];
    return (await client.post('/workers', { name, slots: 2, tools })).textAt('worker_id');
  };

  before(async () => {
    buildService();
    directory = await makeTemporaryDirectory();
    server = await StepServer.start();
    cluster = new Cluster(['api,projector,scheduler,worker', 'api,worker'], {
      SVC_DATA_DIR: directory.path,
    });
    await cluster.start();
    admin = cluster.clientOf(0);
    id = (await admin.post('/agents', { name: 'leaver', scopes })).textAt('id');
    const secret = (await admin.post(`/agents/${id}/credentials`, {})).textAt('agent_secret');
    const there = cluster.clientOf(1);
    const tokens = await there.post('/agents/auth/token', { agent_id: id, agent_secret: secret });
    agent = there.as(tokens.textAt('access_token'));
    const made = await agent.post(`/agents/${id}/keys`, { name: 'deploy' });
    key = there.as(made.textAt('key'));
    await eventually(async () => (await key.get('/tasks')).status === 200);
    live = await EventStream.open(`${cluster.process(1).address}/runs/live`, agent.token);
    ticking = await create(agent, id, eachSecond);
    const held = { uses: 'http.request', with: { method: 'POST', url: server.heldUrl } };
    const holding = await create(agent, id, byHand([held]));
    heldRun = (await agent.post(`/tasks/${holding}/run_now`)).textAt('details.run_id');
    await server.held.wait(undefined, { what: 'the held step', limitMs: 20_000 });
    const worker = await register(agent, 'leaving');
    await eventually(() => startsOf(ticking).length > 0, { limitMs: 20_000 });
    pendingPoll = agent.post(`/workers/${worker}/jobs?wait=20`).then(({ json }) => json['jobs']);
    const answer = await admin.post(`/agents/${id}/disable?runs=cancel`);
    disabledAt = performance.now();
    expect(answer.status, answer.text).to.equal(200);
  });
  after(async () => {
    live.close();
    server.release();
    await cluster.kill([0, 1]);
    await server.close();
    await directory.remove();
  });

  /** Waits for a consequence, and checks how long it took after the agent was disabled. */
  const soon = async (what: string, isSo: () => boolean | Promise<boolean>): Promise<void> => {
    await eventually(isSo, { what, limitMs: 20_000 });
    expect(performance.now() - disabledAt, what).to.be.lessThan(SEEN_LIMIT);
  };

  it('loses its token, its key, its live stream and its runs at the other within a second', async () => {
    await Promise.all([
      soon('the token', async () => (await agent.get('/tasks')).status === 401),
      soon('the key', async () => (await key.get('/tasks')).status === 401),
      soon('the live stream', () => live.ended),
      soon('the run', () => runsOf(ticking).length > 0 && isCanceled(heldRun)),
    ]);
    const canceled = ledger().streams.get(`run-${heldRun}`)?.at(-1);
    const [disabled] = ledger().all('AgentDisabled');
    const timeOf = (at = '') => Date.parse(at);
    const took = timeOf(canceled?.metadata.occurredAt) - timeOf(disabled?.metadata.occurredAt);
    expect(took).to.be.within(0, LIMIT);
  });

  const isCanceled = (run: string): boolean =>
    ledger().streams.get(`run-${run}`)?.at(-1)?.type === 'RunCanceled';

  it('gets no runs of its tasks started, while those of others continue', async () => {
    const owner = String(cluster.credentials?.agent_id);
    const others = await create(admin, owner, eachSecond);
    await eventually(() => startsOf(others).length >= 3, { limitMs: 30_000 });
    const [disabled] = ledger().all('AgentDisabled');
    const from = Date.parse(disabled?.metadata.occurredAt ?? '') + LIMIT;
    const late = startsOf(ticking).filter(({ metadata }) => Date.parse(metadata.occurredAt) > from);
    expect(late).to.deep.equal([]);
    await admin.post(`/tasks/${others}/cancel`);
  });

  it('gets no job for its worker, while another worker gets it', async () => {
    const owner = String(cluster.credentials?.agent_id);
    const worker = await register(admin, 'staying');
    const mail = await create(admin, owner, byHand([{ id: 'mail', uses: 'mail.send' }]));
    await admin.post(`/tasks/${mail}/run_now`);
    const given = await found(async () => {
      const { json } = await admin.post(`/workers/${worker}/jobs?wait=5`);
      const [job] = json['jobs'] as readonly object[];
      return job;
    });
    expect(given).to.have.property('job_id');
    expect((await pendingPoll) ?? []).to.deep.equal([]);
  });
});
