import { expect } from 'chai';
import { pipelineRunner } from '../../../app/roles/pipeline-runner.ts';
import { rehearse, rehearsingOnce, type RehearsalMeans } from '../../../app/roles/rehearsal.ts';
import { BEGINNING } from '../../../domain/event-store.ts';
import { createTelemetry, type ProcessTelemetry } from '../../../observability/create-telemetry.ts';
import type { Rhythm } from '../../../domain/tasks/rhythm.ts';
import { withDefaults } from '../../../domain/tasks/task-definition.ts';
import { Hold } from '../../../scheduler/hold.ts';
import { Membership } from '../../../scheduler/processes/membership.ts';
import { basicTools } from '../../../scheduler/tools/basic-tools.ts';
import { ToolRegistry } from '../../../scheduler/tools/registry.ts';
import type { PipelineRunner } from '../../../scheduler/runs/run-work.ts';
import { World } from '../../scheduler/scheduler-world.ts';
import { deferred, Signal } from '../../support/signals.ts';

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
    const tasks = { at: () => Promise.reject(new Error('there are none')) };
    means = { store, tools, clock, telemetry, hold, membership, runPipeline, tasks };
    await world.idle();
  });

  afterEach(async () => {
    ending.abort();
    await world.clock.advance(60_000);
    await alive;
    await world.close();
  });

  /** As good as for ever: how long the thread that writes takes to answer, the clock of a test knows nothing of. */
  const most = 600_000;
  /** Each time begins behind the one before, which the clock knows nothing of. */
  const whileTimeGoesOn = async (rehearsing: Promise<number>): Promise<number> => {
    const over = { yet: false };
    void rehearsing.finally(() => (over.yet = true));
    while (!over.yet) await world.clock.advance(10);
    return rehearsing;
  };

  it('has all its runs end, and leaves nothing in the log nor in the metrics', async () => {
    const before = await telemetry.metrics.text();
    const rehearsing = rehearse(means, ending.signal, { tasks: 5, times: 3, most });
    expect(await whileTimeGoesOn(rehearsing)).to.equal(15);
    expect(await world.store.head()).to.equal(BEGINNING);
    const fires = /^fires_total.*$/gm;
    expect((await telemetry.metrics.text()).match(fires)).to.deep.equal(before.match(fires));
  });

  it('has tasks like those that are about to be due begin at once, whatever these would wait for', async () => {
    const model = withDefaults({
      ...{ title: 'waits', description: '', created_by: 'somebody' },
      ...{ schedule_kind: 'cron', schedule_expr: '0 0 1 1 *', jitter_seconds: 60 },
      ...{ concurrency_key: 'one', dedupe_key: 'same', overlap_policy: 'skip' },
      payload: { pipeline: [{ uses: 'http_request', with: { url: 'http://localhost/' } }] },
    });
    const models = [model];
    const rehearsing = rehearse(means, ending.signal, { tasks: 5, times: 3, most, models });
    expect(await whileTimeGoesOn(rehearsing)).to.equal(15);
  });

  it('has no more become due before what was due has ended, and is over in time all the same', async () => {
    const begun = new Signal<string>('a run');
    const gate = deferred();
    const runPipeline: PipelineRunner = async (work) => {
      begun.send(work.task.definition.title);
      await gate.promise;
      return means.runPipeline(work);
    };
    const options = { tasks: 5, times: 8, most };
    const rehearsing = rehearse({ ...means, runPipeline }, ending.signal, options);
    // In each of the two ways the tasks of one time.
    while (begun.values.length < 10) await world.clock.advance(10);
    await world.clock.advance(1000);
    expect(begun.values).to.have.lengthOf(10);
    await world.clock.advance(most);
    gate.resolve();
    expect(await whileTimeGoesOn(rehearsing)).to.be.at.most(10);
    expect(begun.values).to.have.lengthOf(10);
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
    const at = (): Promise<never> => {
      asked += 1;
      return Promise.reject(new Error('there are none'));
    };
    ending.abort();
    const onAhead = rehearsingOnce({ ...means, tasks: { at } }, ending.signal);
    const rhythm = { task_revision: 0 } as Rhythm;
    const due = Array.from({ length: 1000 }, (_, index) => ({ taskId: String(index), rhythm }));
    onAhead(due.slice(0, 99));
    expect(asked).to.equal(0);
    onAhead(due.slice(0, 100));
    const first = asked;
    expect(first).to.be.above(0);
    onAhead(due);
    expect(asked).to.equal(first);
  });
});
