import { expect } from 'chai';
import { statisticsProjection } from '../../../projections/views/statistics.ts';
import { eventually } from '../../support/signals.ts';
import { useRunningApi, type SignedIn } from '../../support/running-api.ts';

interface Shown {
  readonly name: string;
  readonly version: number;
  readonly state: string;
  readonly caught_up: boolean;
  readonly rebuild: {
    readonly version: number;
    readonly state: string;
    readonly comparison: object | null;
  } | null;
  readonly previous: { readonly version: number } | null;
}

describe('views over HTTP', () => {
  const api = useRunningApi();
  let operator: SignedIn;
  before(async () => {
    operator = await api().signIn(['ops', 'agents:read']);
  });

  async function look(name: string): Promise<Shown> {
    const answer = await operator.client.get('/projections');
    expect(answer.status, answer.text).to.equal(200);
    const found = (answer.at('projections') as Shown[]).find((each) => each.name === name);
    if (found === undefined) throw new Error(`no projection ${name}`);
    return found;
  }
  const order = (name: string, verb: string, body?: object) =>
    operator.client.post(`/projections/${name}/${verb}`, body);

  it('are listed with their versions', async () => {
    await eventually(async () => {
      const agents = await look('agents');
      expect(agents).to.deep.include({ version: 1, state: 'following', caught_up: true });
      expect(agents.rebuild).to.equal(null);
    });
  });

  it('are rebuilt, switched manually when they are up to date, and rolled back', async () => {
    const ordered = await order('agents', 'rebuild', { switch: 'manual' });
    expect(ordered.status, ordered.text).to.equal(202);
    expect(ordered.at('details')).to.deep.equal({
      name: 'agents',
      version: 2,
      rate: null,
      switch: 'manual',
    });
    expect((await order('agents', 'rebuild')).status).to.equal(409);
    expect((await order('agents', 'rollback')).status).to.equal(409);
    await eventually(async () => {
      const { rebuild } = await look('agents');
      expect(rebuild).to.deep.include({ version: 2, state: 'ready' });
      expect(rebuild?.comparison).to.deep.include({ different: 0, complete: true, first: [] });
    });
    const switched = await order('agents', 'switch');
    expect(switched.status, switched.text).to.equal(200);
    expect(switched.at('details')).to.deep.equal({
      name: 'agents',
      version: 2,
      previous: 1,
      done: true,
    });
    await eventually(async () => {
      const { version, previous, rebuild } = await look('agents');
      expect({ version, rebuild }).to.deep.equal({ version: 2, rebuild: null });
      expect(previous).to.deep.include({ version: 1 });
    });
    const added = await api().signIn([], 'made-in-between');
    const back = await order('agents', 'rollback');
    expect(back.at('details'), back.text).to.deep.equal({
      name: 'agents',
      version: 1,
      previous: 2,
      done: true,
    });
    const agents = await api().admin.client.get('/agents?name_filter=made-in-between');
    expect(agents.list.map(({ id }) => id)).to.deep.equal([added.id]);
  });

  it('switch and roll back only if the command names the live version', async () => {
    const expecting = (expected_version: number) => ({ expected_version });
    expect((await order('topics', 'rebuild', { switch: 'manual' })).status).to.equal(202);
    await eventually(async () => {
      expect((await look('topics')).rebuild).to.deep.include({ state: 'ready' });
    });
    const stale = await order('topics', 'switch', expecting(3));
    expect(stale.status, stale.text).to.equal(412);
    expect(stale.at('error')).to.equal('precondition_failed');
    expect(stale.at('message')).to.equal('version 1 of topics is live, not 3');
    expect(stale.at('details')).to.deep.equal({ expected: 3, actual: 1 });
    expect((await order('topics', 'switch', expecting(1))).status).to.equal(200);
    expect((await order('topics', 'switch', expecting(1))).status).to.equal(412);
    expect((await order('topics', 'switch')).status).to.equal(409);

    const back = await order('topics', 'rollback', expecting(2));
    expect(back.at('details'), back.text).to.include({ version: 1, previous: 2, done: true });
    const again = await order('topics', 'rollback', expecting(2));
    expect(again.status, again.text).to.equal(412);
    expect(again.at('details')).to.deep.equal({ expected: 2, actual: 1 });
    expect((await look('topics')).version).to.equal(1);
    expect((await order('topics', 'rollback', {})).at('details')).to.include({ version: 2 });
  });

  it('pause, resume and are discarded on request', async () => {
    for (const verb of ['pause', 'resume', 'cancel', 'switch']) {
      expect((await order('tasks', verb)).status, verb).to.equal(409);
    }
    expect((await order('tasks', 'rebuild', { switch: 'manual', rate: 1 })).status).to.equal(202);
    expect((await order('tasks', 'pause')).status).to.equal(200);
    expect((await order('tasks', 'pause')).status).to.equal(409);
    expect((await order('tasks', 'switch')).status).to.equal(409);
    expect((await order('tasks', 'resume')).status).to.equal(200);
    const canceled = await order('tasks', 'cancel');
    expect(canceled.at('details')).to.deep.equal({ name: 'tasks', version: 2 });
    await eventually(async () => {
      const { version, rebuild } = await look('tasks');
      expect({ version, rebuild }).to.deep.equal({ version: 1, rebuild: null });
    });
  });

  it('list their parked keys, and report unknown ones', async () => {
    const parked = await operator.client.get('/projections/runs/parked');
    expect(parked.at('items')).to.deep.equal([]);
    for (const verb of ['retry', 'skip']) {
      const answer = await order('runs', `parked/nothing%2Fthere/${verb}`);
      expect(answer.status).to.equal(404);
      expect(answer.at('details')).to.deep.equal({ resource: 'parked key', id: 'nothing/there' });
    }
  });

  it('return 404 for an unknown name', async () => {
    const answer = await order('nothing', 'rebuild');
    expect(answer.status).to.equal(404);
    expect(answer.at('details')).to.deep.equal({ resource: 'projection', id: 'nothing' });
  });

  it('return 503 with their progress while they are being built, and others can be read', async () => {
    const live = (await api().readModel.liveGeneration(statisticsProjection)) ?? 0;
    await api().readModel.withdraw(statisticsProjection);
    const answer = await api().admin.client.get('/stats/summary');
    expect(answer.status).to.equal(503);
    expect(answer.at('details')).to.deep.equal({
      component: 'projections',
      views: [{ name: 'statistics', progress: 0, seconds_left: null }],
    });
    expect(answer.at('message')).to.equal('views are being built: statistics');
    expect(Number(answer.header('retry-after'))).to.be.within(1, 30);
    expect((await api().admin.client.get('/runs')).status).to.equal(200);
    await api().readModel.switchTo(statisticsProjection, live);
    expect((await api().admin.client.get('/stats/summary')).status).to.equal(200);
  });
});
