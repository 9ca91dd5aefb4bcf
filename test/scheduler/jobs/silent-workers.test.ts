import { expect } from 'chai';
import { handle } from '../../../domain/handle.ts';
import { newId } from '../../../domain/ids.ts';
import { streams } from '../../../domain/streams.ts';
import { removeWorker, workerFold } from '../../../domain/workers/worker.ts';
import { silent } from '../../../observability/telemetry.ts';
import { WorkerDirectory } from '../../../projections/reading/worker-directory.ts';
import { SilentWorkers } from '../../../scheduler/jobs/silent-workers.ts';
import { Signal } from '../../support/signals.ts';
import { World } from '../scheduler-world.ts';

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;

describe('workers that fall silent', () => {
  let world: World;
  let directory: WorkerDirectory;
  let stop = new AbortController();
  const leadership = { leads: true };

  beforeEach(async () => {
    world = await World.open();
    stop = new AbortController();
    leadership.leads = true;
    directory = new WorkerDirectory(world.connect(), world.readModel);
    const ready = new Signal('the directory to be up to date');
    void directory.follow(stop.signal, () => ready.send());
    await ready.wait();
    const { coordination, clock } = world;
    const shared = { store: world.connect(), coordination, directory, leadership, clock };
    const workers = new SilentWorkers({ ...shared, telemetry: silent, name: 'one' });
    void workers.run(stop.signal);
  });

  afterEach(async () => {
    stop.abort();
    await world.close();
  });

  const agent = newId(0);
  const tool = { name: 'emails.send', description: 'sends', schema: {} };

  const register = async (name: string): Promise<string> => {
    const id = newId(world.clock.now());
    const { store } = world;
    await handle({
      store,
      stream: streams.worker(agent, name),
      fold: workerFold,
      decide: () => [
        {
          type: 'WorkerRegistered',
          data: { worker_id: id, agent_id: agent, name, tools: [tool], slots: 1, labels: {} },
        },
      ],
      context: world.context(),
    });
    await world.coordination.jobs.see([id]);
    await world.idle();
    return id;
  };

  const stateOf = (id: string): string => {
    const found = directory.find(id);
    return found === null || found === 'replaced' ? String(found) : found.state;
  };

  it('are removed after a day', async () => {
    const id = await register('mailer');
    await world.clock.advance(day - hour);
    expect(stateOf(id)).to.equal('active');
    await world.clock.advance(hour + 20 * minute);
    expect(stateOf(id)).to.equal('silent');
    const [removed] = (await world.events('worker-')).slice(-1);
    expect(removed?.data).to.deep.equal({ worker_id: id, reason: 'silent' });
    expect(removed?.metadata).to.include({ actor: 'service', source: 'one' });
  });

  it('are kept if they were heard of in the meantime', async () => {
    const id = await register('mailer');
    await world.clock.advance(23 * hour);
    await world.coordination.jobs.see([id]);
    await world.clock.advance(23 * hour);
    expect(stateOf(id)).to.equal('active');
  });

  it('are kept for a day after the coordination store was lost', async () => {
    const id = await register('mailer');
    const { jobs } = world.coordination;
    jobs.seen = () => Promise.resolve(new Map());
    await world.clock.advance(23 * hour);
    expect(stateOf(id)).to.equal('active');
    await world.clock.advance(2 * hour);
    expect(stateOf(id)).to.equal('silent');
  });

  it('are removed only by the leader', async () => {
    leadership.leads = false;
    const id = await register('mailer');
    await world.clock.advance(2 * day);
    expect(stateOf(id)).to.equal('active');
    expect(await world.events('worker-')).to.have.lengthOf(1);
  });

  it('are left alone if they were drained', async () => {
    const id = await register('mailer');
    const stream = streams.worker(agent, 'mailer');
    await handle({
      store: world.store,
      stream,
      fold: workerFold,
      decide: (state) => removeWorker(state, id, 'drained'),
      context: world.context(),
    });
    await world.clock.advance(2 * day);
    expect(stateOf(id)).to.equal('drained');
    expect(await world.events('worker-')).to.have.lengthOf(2);
  });
});
