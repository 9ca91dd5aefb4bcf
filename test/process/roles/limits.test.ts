import { expect } from 'chai';
import { withinOneWindow } from '../../support/counting-window.ts';
import { EventStream } from '../../support/event-stream.ts';
import { buildService, endsItsProcesses } from '../../support/service-process.ts';
import { eventually } from '../../support/signals.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { Cluster } from '../cluster.ts';

describe('two API processes', function () {
  this.timeout(180_000);
  endsItsProcesses();
  const directory = useTemporaryDirectory();
  before(() => buildService());

  const two = async (settings = {}): Promise<Cluster> => {
    const roles = ['api,projector,scheduler,worker', 'api'];
    const cluster = new Cluster(roles, { SVC_DATA_DIR: directory(), ...settings });
    await cluster.start();
    return cluster;
  };

  it("count an agent's requests together", async () => {
    const window = { SVC_RATE_LIMIT: '60', SVC_RATE_LIMIT_WINDOW_SECONDS: '3600' };
    const cluster = await two(window);
    const [here, there] = [cluster.clientOf(0), cluster.clientOf(1)];
    const left = async (client: typeof here): Promise<number> =>
      Number((await client.get('/nowhere')).header('X-RateLimit-Remaining'));
    for (let times = 0; times < 40; times += 1) await left(here);
    await eventually(async () => (await left(there)) < 20, {
      what: 'the other process to count them',
    });
    await eventually(async () => (await here.get('/nowhere')).status === 429);
    await eventually(async () => (await there.get('/nowhere')).status === 429);
    const refused = await there.get('/tasks');
    expect(refused.status).to.equal(429);
    expect(refused.at('details')).to.include({ limit: 60, window: '3600s' });
    expect((await there.get('/health')).status).to.equal(200);
    expect((await there.as(null).get('/nowhere')).status).to.equal(404);
  });

  it('count failed login attempts together', async () => {
    const cluster = await two();
    const admin = cluster.clientOf(0);
    let agents = 0;
    const statuses = await withinOneWindow(60_000, async () => {
      const made = await admin.post('/agents', { name: `guessed ${(agents += 1)}`, scopes: [] });
      const agent_id = made.textAt('id');
      const given = await admin.post(`/agents/${agent_id}/credentials`);
      const guesses = Array<string>(12).fill('a wrong secret');
      const attempts: number[] = [];
      for (const agent_secret of [...guesses, given.textAt('agent_secret')]) {
        const client = cluster.clientOf(attempts.length % 2);
        const answer = await client.post('/agents/auth/token', { agent_id, agent_secret });
        attempts.push(answer.status);
        if (answer.status !== 429) continue;
        expect(Number(answer.header('Retry-After'))).to.be.within(1, 60);
      }
      return attempts;
    });
    expect(statuses).to.deep.equal([...Array<number>(9).fill(401), 429, 429, 429, 429]);
  });

  it("stream the other's runs live, and resume each other's streams", async () => {
    const cluster = await two();
    const client = cluster.clientOf(0);
    const task = await client.post('/tasks', {
      title: 'watched',
      description: 'from afar',
      schedule_kind: 'event',
      created_by: cluster.credentials?.agent_id,
      payload: { pipeline: [{ uses: 'echo', with: { a: 1 } }] },
    });
    const path = `/tasks/${task.textAt('id')}`;
    const watch = (index: number, headers = {}): Promise<EventStream> =>
      EventStream.open(`${cluster.process(index).address}${path}/live`, client.token, headers);
    const far = await watch(1);
    await far.named('live.started');
    await client.post(`${path}/run_now?wait=20`);
    const last = await far.named('run.ended');
    expect(far.names).to.deep.equal(['run.requested', 'run.started', 'run.ended']);
    expect(last.data['run']).to.include({ state: 'succeeded' });
    cluster.process(1).signal('SIGTERM');
    expect((await far.named('live.ended')).data['reason']).to.equal('shutdown');
    expect((await cluster.process(1).ended()).code).to.equal(0);
    await client.post(`${path}/run_now?wait=20`);
    const near = await watch(0, { 'last-event-id': last.id });
    await near.named('run.ended');
    expect(near.names).to.deep.equal(['run.requested', 'run.started', 'run.ended']);
    near.close();
  });
});
