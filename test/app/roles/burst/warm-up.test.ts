import { expect } from 'chai';
import { pipelineRunner } from '../../../../app/roles/pipeline-runner.ts';
import { warmUp, warmUpOnce, type WarmUpOptions } from '../../../../app/roles/burst/warm-up.ts';
import { BEGINNING } from '../../../../domain/event-store.ts';
import {
  createTelemetry,
  type ProcessTelemetry,
} from '../../../../observability/create-telemetry.ts';
import type { ScheduleState } from '../../../../domain/tasks/schedule-state.ts';
import { withDefaults } from '../../../../domain/tasks/task-definition.ts';
import { Hold } from '../../../../scheduler/hold.ts';
import { anyOwner } from '../../../../scheduler/owners/owners.ts';
import { Membership } from '../../../../scheduler/processes/membership.ts';
import { basicTools } from '../../../../scheduler/tools/basic-tools.ts';
import { ToolRegistry } from '../../../../scheduler/tools/registry.ts';
import type { PipelineRunner } from '../../../../scheduler/runs/run-work.ts';
import { World } from '../../../scheduler/scheduler-world.ts';
import { deferred, Signal } from '../../../support/signals.ts';
import { noSecrets } from '../../../support/test-secrets.ts';

describe('a warm-up for many tasks that are due at once', () => {
  let world: World;
  let telemetry: ProcessTelemetry;
  let options: WarmUpOptions;
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
      id: 'one',
      lease: 30_000,
      about,
      coordination,
      clock,
      telemetry,
    });
    alive = membership.run(ending.signal);
    const hold = new Hold(store);
    hold.held = false;
    const runPipeline = pipelineRunner({ store, tools, clock, telemetry, secrets: noSecrets });
    const tasks = { at: () => Promise.reject(new Error('there are no tasks')) };
    options = { store, tools, clock, telemetry, hold, membership, runPipeline, tasks };
    await world.idle();
  });

  afterEach(async () => {
    ending.abort();
    await world.clock.advance(60_000);
    await alive;
    await world.close();
  });

  /**
   * Practically without limit, because the virtual clock does not know how long the writer thread
   * takes.
   */
  const timeLimit = 600_000;
  /**
   * Advances the time in small steps, because each round waits for the real end of the one before.
   */
  const whileTimePasses = async (warming: Promise<number>): Promise<number> => {
    const over = { yet: false };
    void warming.finally(() => (over.yet = true));
    while (!over.yet) await world.clock.advance(10);
    return warming;
  };

  it('ends all its runs, and leaves nothing in the log or the metrics', async () => {
    const before = await telemetry.metrics.text();
    const warming = warmUp(options, ending.signal, { tasks: 5, rounds: 3, timeLimit });
    expect(await whileTimePasses(warming)).to.equal(15);
    expect(await world.store.head()).to.equal(BEGINNING);
    const fires = /^fires_total.*$/gm;
    expect((await telemetry.metrics.text()).match(fires)).to.deep.equal(before.match(fires));
  });

  it('starts tasks that resemble the due ones at once, ignoring their delays', async () => {
    const model = withDefaults({
      title: 'waits',
      description: '',
      created_by: 'somebody',
      schedule_kind: 'cron',
      schedule_expr: '0 0 1 1 *',
      jitter_seconds: 60,
      concurrency_key: 'one',
      dedupe_key: 'same',
      overlap_policy: 'skip',
      payload: { pipeline: [{ uses: 'http_request', with: { url: 'http://localhost/' } }] },
    });
    const models = [model];
    const warming = warmUp(options, ending.signal, { tasks: 5, rounds: 3, timeLimit, models });
    expect(await whileTimePasses(warming)).to.equal(15);
  });

  it('looks up one owner besides those of the due tasks, as a busy worker does', async () => {
    const seen = new Set<string>();
    const stepDenial = (id: string): null => {
      seen.add(id);
      return null;
    };
    const { store, tools, clock } = options;
    const parts = { store, tools, clock, telemetry, secrets: noSecrets };
    const runPipeline = pipelineRunner({ ...parts, owners: { ...anyOwner, stepDenial } });
    const models = [
      withDefaults({
        title: 'due',
        description: '',
        created_by: 'somebody',
        schedule_kind: 'cron',
        schedule_expr: '0 0 1 1 *',
        payload: { pipeline: [] },
      }),
    ];
    const extent = { tasks: 5, rounds: 3, timeLimit, models };
    await whileTimePasses(warmUp({ ...options, runPipeline }, ending.signal, extent));
    expect(seen).to.include('somebody').and.to.have.lengthOf(2);
  });

  it('starts a round only after the previous one has ended, and still ends in time', async () => {
    const begun = new Signal<string>('a run');
    const gate = deferred();
    const runPipeline: PipelineRunner = async (work) => {
      begun.send(work.task.definition.title);
      await gate.promise;
      return options.runPipeline(work);
    };
    const extent = { tasks: 5, rounds: 8, timeLimit };
    const warming = warmUp({ ...options, runPipeline }, ending.signal, extent);
    // The tasks of one round in each of the two stages.
    while (begun.values.length < 10) await world.clock.advance(10);
    await world.clock.advance(1000);
    expect(begun.values).to.have.lengthOf(10);
    await world.clock.advance(timeLimit);
    gate.resolve();
    expect(await whileTimePasses(warming)).to.be.at.most(10);
    expect(begun.values).to.have.lengthOf(10);
  });

  it('ends with the process', async () => {
    const warming = warmUp(options, ending.signal, { tasks: 5, rounds: 3 });
    ending.abort();
    await world.clock.advance(1000);
    expect(await warming).to.equal(0);
    expect(await world.store.head()).to.equal(BEGINNING);
  });

  it('happens once, the first time that many tasks are due', () => {
    let asked = 0;
    const at = (): Promise<never> => {
      asked += 1;
      return Promise.reject(new Error('there are no tasks'));
    };
    ending.abort();
    const warmUpFor = warmUpOnce({ ...options, tasks: { at } }, ending.signal);
    const schedule = { task_revision: 0 } as ScheduleState;
    const due = Array.from({ length: 1000 }, (_, index) => ({
      taskId: String(index),
      state: schedule,
    }));
    warmUpFor(due.slice(0, 99));
    expect(asked).to.equal(0);
    warmUpFor(due.slice(0, 100));
    const first = asked;
    expect(first).to.be.above(0);
    warmUpFor(due);
    expect(asked).to.equal(first);
  });
});
