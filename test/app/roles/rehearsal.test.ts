import { expect } from 'chai';
import { pipelineRunner } from '../../../app/roles/pipeline-runner.ts';
import { rehearse, rehearsingOnce, type RehearsalMeans } from '../../../app/roles/rehearsal.ts';
import { BEGINNING } from '../../../domain/event-store.ts';
import { createTelemetry, type ProcessTelemetry } from '../../../observability/create-telemetry.ts';
import { Hold } from '../../../scheduler/hold.ts';
import { Membership } from '../../../scheduler/processes/membership.ts';
import { basicTools } from '../../../scheduler/tools/basic-tools.ts';
import { ToolRegistry } from '../../../scheduler/tools/registry.ts';
import { World } from '../../scheduler/scheduler-world.ts';

describe('a rehearsal of many tasks that are due at once', () => {
  let world: World;
  let telemetry: ProcessTelemetry;
  let means: RehearsalMeans;
  let ending: AbortController;
  let alive: Promise<void>;

  beforeEach(async () => {
    world = await World.open();
    ending = new AbortController();
    telemetry = createTelemetry({ level: 'silent', strict: true });
    const { store, clock, coordination } = world;
    const tools = new ToolRegistry();
    for (const tool of basicTools) tools.register(tool);
    const about = { roles: ['worker'], host: 'here', pid: 1 };
    const membership = new Membership({
      ...{ id: 'one', lease: 30_000, about, coordination, clock, telemetry },
    });
    alive = membership.run(ending.signal);
    const hold = new Hold(store);
    hold.held = false;
    const secrets = (): undefined => undefined;
    const runPipeline = pipelineRunner({ store, tools, clock, telemetry, secrets });
    means = { store, tools, clock, telemetry, hold, membership, runPipeline };
    await world.idle();
  });

  afterEach(async () => {
    ending.abort();
    await world.clock.advance(60_000);
    await alive;
    await world.close();
  });

  it('has all its runs end, and leaves nothing in the log nor in the metrics', async () => {
    const before = await telemetry.metrics.text();
    const rehearsing = rehearse(means, ending.signal, { tasks: 5, times: 3 });
    await world.clock.advance(1000);
    expect(await rehearsing).to.equal(15);
    expect(await world.store.head()).to.equal(BEGINNING);
    const fires = /^fires_total.*$/gm;
    expect((await telemetry.metrics.text()).match(fires)).to.deep.equal(before.match(fires));
  });

  it('ends when the process does', async () => {
    const rehearsing = rehearse(means, ending.signal, { tasks: 5, times: 3 });
    ending.abort();
    await world.clock.advance(1000);
    expect(await rehearsing).to.equal(0);
    expect(await world.store.head()).to.equal(BEGINNING);
  });

  it('is held once, the first time that many are due', () => {
    let asked = 0;
    const counting = {
      ...means,
      get clock() {
        asked += 1;
        return world.clock;
      },
    };
    ending.abort();
    const onAhead = rehearsingOnce(counting, ending.signal);
    onAhead(99);
    expect(asked).to.equal(0);
    onAhead(100);
    expect(asked).to.equal(1);
    onAhead(1000);
    expect(asked).to.equal(1);
  });
});
