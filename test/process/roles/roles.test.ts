import { expect } from 'chai';
import { join } from 'node:path';
import { buildService, endsItsProcesses } from '../../support/service-process.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { Cluster, fiveProcesses, oneProcess } from '../cluster.ts';
import { playScenario } from '../scripted-scenario.ts';

describe('the service, split into processes by role', function () {
  this.timeout(240_000);
  endsItsProcesses();
  const directory = useTemporaryDirectory();
  before(() => buildService());

  async function clusterOf(roles: readonly string[], name: string): Promise<Cluster> {
    const cluster = new Cluster(roles, { SVC_DATA_DIR: join(directory(), name) });
    await cluster.start();
    return cluster;
  }

  it('has the same results in five processes as in one', async () => {
    const one = await clusterOf(oneProcess, 'one');
    const ofOne = await playScenario(one);
    expect(await one.terminate()).to.deep.equal([0]);
    const five = await clusterOf(fiveProcesses, 'five');
    const ofFive = await playScenario(five);
    expect(await five.terminate()).to.deep.equal([0, 0, 0, 0, 0]);
    expect(ofFive).to.deep.equal(ofOne);
    // Not the same empty result.
    expect(ofOne['ran']).to.deep.include({ state: 'succeeded', success: true, attempt: 1 });
    expect(ofOne['failed']).to.deep.include({ state: 'failed', error: 'on purpose', attempt: 2 });
    expect(ofOne['triggered']).to.deep.equal([['listener'], []]);
    expect(ofOne['refused']).to.deep.equal([409, 'conflict']);
  });

  it('shows in one API process the changes made through another, to any caller', async () => {
    const roles = ['api,scheduler', 'api,worker', 'projector'];
    const cluster = await clusterOf(roles, 'two');
    const [here, there] = [cluster.clientOf(0), cluster.clientOf(1)];
    for (let turn = 0; turn < 20; turn += 1) {
      const created = await here.post('/tasks', {
        title: `task ${turn}`,
        description: 'seen at once',
        schedule_kind: 'event',
        created_by: cluster.credentials?.agent_id,
        payload: { pipeline: [] },
      });
      expect(created.status, created.text).to.equal(201);
      const after = created.header('X-Event-Position');
      const id = created.textAt('id');
      const shown = await there.get(`/tasks/${id}?after=${after}`);
      expect(shown.status, shown.text).to.equal(200);
      const ran = await there.post(`/tasks/${id}/run_now?wait=20`);
      expect(ran.at('details.run.state'), ran.text).to.equal('succeeded');
      const listed = await here.get(`/runs?task_id=${id}&after=${ran.header('X-Event-Position')}`);
      expect(listed.at('total'), listed.text).to.equal(1);
    }
    const beyond = await there.get('/tasks?after=00000000000fffff');
    expect([beyond.status, beyond.at('details.field')]).to.deep.equal([400, 'after']);
  });
});
