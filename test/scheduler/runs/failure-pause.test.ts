import { setMaxListeners } from 'node:events';
import { expect } from 'chai';
import { SystemClock } from '../../../app/clock.ts';
import { projections } from '../../../app/projecting/projections.ts';
import { decorate } from '../../../domain/decorate.ts';
import type { EventStore } from '../../../domain/event-store.ts';
import { createEventCodec } from '../../../domain/events/codec.ts';
import type { RunEvent } from '../../../domain/events/catalogue.ts';
import { load, toNewEvents, type CommandContext } from '../../../domain/handle.ts';
import { newId } from '../../../domain/ids.ts';
import { streams } from '../../../domain/streams.ts';
import { requireTask, taskFold, type LiveTask } from '../../../domain/tasks/task.ts';
import {
  createTaskCommand,
  requestManualRun,
  resumeTaskCommand,
  updateTaskCommand,
} from '../../../domain/tasks/task-commands.ts';
import { taskDefaults, type TaskDefinition } from '../../../domain/tasks/task-definition.ts';
import { silent } from '../../../observability/telemetry.ts';
import { LiveStreams } from '../../../projections/reading/live-streams.ts';
import { createProjector } from '../../../projections/projector/projector.ts';
import type { ReadModel } from '../../../projections/read-model.ts';
import { runsProjection } from '../../../projections/views/runs.ts';
import { FailurePause } from '../../../scheduler/runs/failure-pause.ts';
import { PinnedTasks } from '../../../scheduler/pinned-tasks.ts';
import type { QueuedRun } from '../../../scheduler/runs/queued-run.ts';
import { openSqliteEventStore } from '../../../stores/sqlite/event-log/event-store.ts';
import { openSqliteReadModel } from '../../../stores/sqlite/read-model/read-model.ts';
import { eventually } from '../../support/signals.ts';
import {
  makeTemporaryDirectory,
  type TemporaryDirectory,
} from '../../support/temporary-directory.ts';

describe('a task with a failure limit', () => {
  const clock = new SystemClock();
  const owner = newId(0);
  let directory: TemporaryDirectory;
  let store: EventStore;
  let readModel: ReadModel;
  let stop: AbortController;
  let projecting: Promise<void>;
  let failures: FailurePause;

  beforeEach(async () => {
    directory = await makeTemporaryDirectory();
    const shared = { directory: directory.path, telemetry: silent };
    store = await openSqliteEventStore({ ...shared, codec: createEventCodec() });
    readModel = await openSqliteReadModel(shared);
    stop = new AbortController();
    setMaxListeners(0, stop.signal);
    const projector = createProjector({
      store,
      readModel,
      projections,
      telemetry: silent,
      clock,
      fence: 1,
    });
    projecting = projector.run(stop.signal);
    await eventually(async () => (await readModel.liveGeneration(runsProjection)) !== null);
    failures = failurePause(readModel);
  });

  const failurePause = (readModel: ReadModel): FailurePause => {
    // Nothing follows the log here, so each check reads it.
    const tasks = new PinnedTasks(
      store,
      new LiveStreams(store, 'task-', taskFold, { capacity: 0 }),
    );
    return new FailurePause({ store, readModel, tasks, clock, telemetry: silent, name: 'worker' });
  };

  afterEach(async () => {
    stop.abort();
    await projecting;
    await store.close();
    await readModel.close();
    await directory.remove();
  });

  const contextNow = (): CommandContext => {
    const now = clock.now();
    const id = newId(now);
    return { commandId: id, actor: owner, source: 'test', correlationId: id, now };
  };

  const create = async (changes: Partial<TaskDefinition>): Promise<string> => {
    const definition = {
      ...taskDefaults,
      title: 't',
      description: 'd',
      schedule_kind: 'event',
      created_by: owner,
      payload: { pipeline: [] },
      ...changes,
    } as TaskDefinition;
    const taskId = newId(clock.now());
    await createTaskCommand({ store, taskId, definition, context: contextNow() });
    return taskId;
  };

  const taskOf = async (id: string): Promise<LiveTask> =>
    requireTask((await load(store, streams.task(id), taskFold)).state);

  /** A run that ends this way, and the worker's check after it. */
  const ends = async (taskId: string, end: 'RunSucceeded' | 'RunFailed'): Promise<void> => {
    const task = await taskOf(taskId);
    const { runId } = await requestManualRun(store, taskId, task, contextNow());
    const at = new Date(clock.now()).toISOString();
    const common = { task_id: taskId, started_at: at, attempt: 1, steps: [], output: {} };
    const last: RunEvent =
      end === 'RunSucceeded'
        ? { type: end, data: common }
        : { type: end, data: { ...common, error: 'out of paper', step: null } };
    const events: RunEvent[] = [
      { type: 'RunStarted', data: { worker: 'worker', attempt: 1, leased_until: at } },
      last,
    ];
    const stream = streams.run(runId);
    await store.append(stream, toNewEvents(stream, events, contextNow()), 0);
    failures.after({ id: runId, taskId, ended: true } as QueuedRun, task);
    await failures.settled();
  };

  it('is paused and logged when that many last runs have failed', async () => {
    const task = await create({ pause_after_failures: 2 });
    await ends(task, 'RunFailed');
    expect((await taskOf(task)).status).to.equal('active');
    await ends(task, 'RunFailed');
    expect((await taskOf(task)).status).to.equal('paused');
    const [last] = await store.readStream(streams.task(task), { direction: 'backwards', limit: 1 });
    expect(last).to.deep.include({ type: 'TaskPaused', data: { by_failures: true } });
    expect(last?.metadata).to.include({ actor: 'service', reason: 'its last 2 runs failed' });
  });

  it('continues when one of them has succeeded', async () => {
    const task = await create({ pause_after_failures: 2 });
    for (const end of ['RunFailed', 'RunSucceeded', 'RunFailed'] as const) await ends(task, end);
    expect((await taskOf(task)).status).to.equal('active');
  });

  it('continues when it is changed during the check', async () => {
    const task = await create({ pause_after_failures: 1 });
    const find: ReadModel['find'] = async (projection, query) => {
      const found = await readModel.find(projection, query);
      const command = { store, taskId: task, context: contextNow(), mayChange: () => {} };
      await updateTaskCommand({ ...command, changes: { title: 'mended' } });
      return found;
    };
    failures = failurePause(decorate(readModel, { find }));
    await ends(task, 'RunFailed');
    expect(await taskOf(task)).to.include({ status: 'active' });
    failures = failurePause(readModel);
    await ends(task, 'RunFailed');
    expect(await taskOf(task)).to.include({ status: 'paused' });
  });

  it('restarts the count when it is resumed', async () => {
    const task = await create({ pause_after_failures: 2 });
    await ends(task, 'RunFailed');
    await ends(task, 'RunFailed');
    const context = { ...contextNow(), now: clock.now() + 1 };
    const command = { store, taskId: task, context, mayChange: () => {} };
    await resumeTaskCommand({ ...command, missed: 'skip' });
    await eventually(() => clock.now() > context.now);
    await ends(task, 'RunFailed');
    expect((await taskOf(task)).status).to.equal('active');
    await ends(task, 'RunFailed');
    expect((await taskOf(task)).status).to.equal('paused');
  });

  it('is never paused without the setting', async () => {
    const task = await create({});
    await ends(task, 'RunFailed');
    await ends(task, 'RunFailed');
    expect((await taskOf(task)).status).to.equal('active');
  });
});
