import { expect } from 'chai';
import { toNewEvents } from '../../../domain/handle.ts';
import type { JsonObject } from '../../../domain/json.ts';
import { retryFailedRun } from '../../../domain/runs/run-retry.ts';
import { streams } from '../../../domain/streams.ts';
import { requestManualRun } from '../../../domain/tasks/task-commands.ts';
import type { TaskDefinition } from '../../../domain/tasks/task-definition.ts';
import { runsProjection, type RunDocument } from '../../../projections/views/runs.ts';
import { fromDocument } from '../../../scheduler/runs/queued-run.ts';
import { BackfillWorld } from '../backfills/backfill-harness.ts';
import { folded, LogOfTest, request } from '../../projections/recorded.ts';
import { minute, START } from '../scheduler-world.ts';
import { LEASE, WorkerWorld } from './worker-world.ts';

/** A step for each outcome, of which the params select one. */
const pipeline = [
  { id: 'first', uses: 'act' },
  { id: 'few', uses: 'act', if: 'params.limit < `5`' },
  { id: 'many', uses: 'act', if: 'params.limit >= `5` && params.shop == `"a"`' },
];
const payload = { params: { limit: 1, shop: 'a' }, pipeline };

describe('a run with params', () => {
  let world: WorkerWorld;
  let backfills: BackfillWorld;

  beforeEach(async () => {
    world = await WorkerWorld.open();
    backfills = new BackfillWorld(world.world);
  });

  afterEach(async () => {
    await backfills.close();
    await world.close();
  });

  const task = (fields: Partial<TaskDefinition> = {}): Promise<void> =>
    world.task('t', [], { payload, max_retries: 0, ...fields });
  const run = async (params?: JsonObject): Promise<string> => {
    const { store } = world.world;
    const context = world.world.context();
    const pinned = await world.world.task('t');
    const { runId } = await requestManualRun(store, 't', pinned, context, { params });
    await world.world.idle();
    return runId;
  };

  it('evaluates its expressions with its params in place of the defaults', async () => {
    await task();
    await world.start('one');
    expect(world.stepsOf(await run())).to.deep.equal(['first', 'few']);
    expect(world.stepsOf(await run({ limit: 7 }))).to.deep.equal(['first', 'many']);
    expect(world.stepsOf(await run({ limit: 7, shop: 'b' }))).to.deep.equal(['first']);
  });

  it('keeps its params when another worker continues it', async () => {
    const [, ...rest] = pipeline;
    await task({
      payload: {
        ...payload,
        pipeline: [{ id: 'first', uses: 'hold', timeout_seconds: 9999 }, ...rest],
      },
    });
    const one = await world.start('one');
    const runId = await run({ limit: 7 });
    await world.start('two');
    one.kill();
    await world.clock.advance(LEASE * 2);
    await world.let('two', runId, 'first');
    expect((await world.run(runId)).state).to.equal('succeeded');
    expect(world.stepsOf(runId)).to.deep.equal(['first', 'first', 'many']);
  });

  it('passes its params on to its retry, unless the retry has others', async () => {
    await task();
    await world.start('one');
    world.fails('many', 1);
    const failed = await run({ limit: 7 });
    const { store } = world.world;
    const retry = async (params?: JsonObject): Promise<string> => {
      const context = world.world.context();
      const current = await world.world.task('t');
      const asked = { store, runId: failed, from: 'start', task: current, context } as const;
      const { runId } = await retryFailedRun({ ...asked, params });
      await world.world.idle();
      return runId;
    };
    expect(world.stepsOf(await retry())).to.deep.equal(['first', 'many']);
    expect(world.stepsOf(await retry({ limit: 2 }))).to.deep.equal(['first', 'few']);
  });

  it('has the params of its backfill', async () => {
    await task({ schedule_kind: 'cron', schedule_expr: '* * * * *' });
    await world.start('one');
    await backfills.start('backfills');
    const span = { from: START - 2 * minute, to: START - minute };
    await backfills.request('b', 't', span, { params: { limit: 7 } });
    const runs = (await backfills.requests()).map(({ stream }) => stream.slice('run-'.length));
    expect(runs).to.have.lengthOf(2);
    for (const id of runs) expect(world.stepsOf(id)).to.deep.equal(['first', 'many']);
  });

  it('fails at once if an event triggers it and a required param has no default', async () => {
    const params_schema = { type: 'object', required: ['limit'] };
    await task({ payload: { pipeline }, params_schema, max_retries: 3 });
    await world.start('one');
    const event = {
      id: 'e',
      topic: 'a.b',
      payload: {},
      source_agent_id: 'agent-1',
      published_at: '2026-03-01T09:00:00.000Z',
    };
    const about = { task_id: 't', trigger: 'event', scheduled_for: null, event } as const;
    const requested = { type: 'RunRequested', data: request(about) } as const;
    const stream = streams.run('by-event');
    const events = toNewEvents(stream, [requested], world.world.context());
    await world.world.store.append(stream, events, 'none');
    await world.world.idle();
    const last = (await world.eventsOf('by-event')).at(-1);
    expect(last?.type).to.equal('RunFailed');
    expect(last?.data).to.include({
      error: 'payload.params.limit: is required by params_schema',
      attempt: 1,
    });
    expect(world.stepsOf('by-event')).to.deep.equal([]);
    expect(world.stepsOf(await run({ limit: 2 }))).to.deep.equal(['first', 'few']);
  });

  it('is read from its stream before it starts, whether the queue comes from the log or a view', () => {
    const document = (fields: Parameters<typeof request>[0]): RunDocument => {
      const log = new LogOfTest();
      log.add('run-1', 'RunRequested', request(fields));
      return folded(runsProjection, log.events).get('1') as RunDocument;
    };
    expect(fromDocument(document({ params: { limit: 7 } }), 0).plain).to.equal(false);
    const { params: _params, ...older } = document({});
    for (const plain of [document({}), older as RunDocument]) {
      expect(fromDocument(plain, 0).plain).to.equal(true);
    }
  });
});
