import { expect } from 'chai';
import { eventually, found } from '../../support/signals.ts';
import { useWorkerWorld } from '../worker/worker-world.ts';
import { signIn, taskOf, type SignedInAgent } from '../owasp/attackers.ts';

describe('the quotas of a namespace, in a whole service', function () {
  this.timeout(60_000);
  const world = useWorkerWorld();
  let agent: SignedInAgent;
  let name: string;
  let made = 0;

  const scopes = ['tasks:read', 'tasks:write', 'runs:read', 'events:publish', 'approvals:write'];
  const limit = (quotas: object) => world().admin.put(`/namespaces/${name}`, { quotas });
  const used = async (quota: string): Promise<number> => {
    const { json } = await agent.client.get(`/namespaces/${name}/usage`);
    const all = json['quotas'] as readonly { readonly quota: string; readonly used: number }[];
    return all.find((each) => each.quota === quota)?.used ?? 0;
  };
  const create = async (...pipeline: readonly object[]): Promise<string> =>
    (await agent.client.post('/tasks', taskOf(agent.id, ...pipeline))).textAt('id');
  const run = async (task: string): Promise<Readonly<Record<string, unknown>>> => {
    const { json } = await agent.client.post(`/tasks/${task}/run_now?wait=30`);
    return (json['details'] as { readonly run: Readonly<Record<string, unknown>> }).run;
  };

  beforeEach(async () => {
    name = `team-${(made += 1)}`;
    await world().admin.post('/namespaces', { name });
    agent = await signIn(world(), scopes, { namespace: name });
  });

  it('count the events of runs, and delay further runs until there is room', async () => {
    const task = await create({ uses: 'echo', with: {} });
    await run(task);
    await eventually(async () => (await used('events')) >= 3);
    await limit({ events: 1 });
    const refused = await agent.client.post(`/tasks/${task}/run_now`);
    expect([refused.status, refused.at('details.quota')]).to.deep.equal([409, 'events']);
    // Scheduled runs are not rejected, because they would be lost.
    await limit({});
    const body = { schedule_kind: 'cron', schedule_expr: '* * * * * *' };
    await agent.client.put(`/tasks/${task}`, body);
    await limit({ events: 1 });
    const waiting = await found(async () => {
      const { json } = await agent.client.get('/runs?state=queued');
      return (json['items'] as readonly { readonly id: string }[])[0]?.id;
    });
    await agent.client.post(`/tasks/${task}/pause`);
    await limit({});
    await eventually(async () => {
      const state = (await agent.client.get(`/runs/${waiting}`)).at('state');
      return state === 'succeeded' || state === 'skipped';
    });
  });

  it('fail the steps events.publish and tasks.run that would exceed them', async () => {
    const publish = { uses: 'events.publish', with: { topic: 'fresh', payload: {} } };
    const publishing = await create(publish);
    const target = await create({ uses: 'echo', with: {} });
    const asked = { uses: 'approval', with: { message: 'Now?' } };
    const running = await create(asked, { uses: 'tasks.run', with: { task_id: target } });
    await limit({ topics: 0 });
    const unpublished = await run(publishing);
    expect(unpublished['state']).to.equal('failed');
    expect(unpublished['error']).to.match(/the quota topics of the namespace is used up: 0 of 0/);
    await limit({});
    // It has started, so it continues although the log is full.
    const requested = await agent.client.post(`/tasks/${running}/run_now`);
    const id = requested.textAt('details.run_id');
    const approval = await found(async () => {
      const { json } = await agent.client.get(`/approvals?run_id=${id}`);
      return (json['items'] as readonly { readonly id: string }[])[0]?.id;
    });
    await limit({ events: 0 });
    await agent.client.post(`/approvals/${approval}/approve`, {});
    const { json: failed } = await found(async () => {
      const answer = await agent.client.get(`/runs/${id}`);
      return answer.at('state') === 'failed' ? answer : undefined;
    });
    expect(failed['error']).to.match(/the quota events of the namespace is used up/);
  });

  it('count the artifacts of runs, and fail a step whose result no longer fits', async () => {
    const big = await agent.client.post('/tasks', {
      ...taskOf(agent.id),
      payload: {
        params: { text: 'x'.repeat(100_000) },
        pipeline: [{ uses: 'echo', with: '${[params.text, params.text, params.text]}' }],
      },
    });
    const task = big.textAt('id');
    expect((await run(task))['state']).to.equal('succeeded');
    await eventually(async () => (await used('artifact_bytes')) > 300_000);
    await limit({ artifact_bytes: 400_000 });
    const failed = await run(task);
    expect(failed['state']).to.equal('failed');
    expect(failed['error']).to.match(/too large for the log, and the quota artifact_bytes/);
  });

  it('count entries in the streams of extensions', async () => {
    const entry = { topic: 'audit', payload: { text: 'x' } };
    const path = '/ext/events_demo/publish/notes';
    const posted = await agent.client.post(path, entry);
    expect(posted.status, posted.text).to.be.within(200, 299);
    await eventually(async () => (await used('events')) === 1);
    await limit({ events: 1 });
    const refused = await agent.client.post(path, entry);
    expect([refused.status, refused.at('details.quota')]).to.deep.equal([409, 'events']);
  });
});
