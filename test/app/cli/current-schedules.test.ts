import { expect } from 'chai';
import { currentSchedules } from '../../../app/cli/store/current-schedules.ts';
import { dueProjection } from '../../../projections/views/due.ts';
import { ProjectorHarness } from '../../projections/projector-harness.ts';
import { definition } from '../../projections/recorded.ts';

describe('the schedule state of all tasks, read outside the service', () => {
  let older: ProjectorHarness;
  let newer: ProjectorHarness;

  beforeEach(async () => {
    [older, newer] = [await ProjectorHarness.open(), await ProjectorHarness.open()];
  });
  afterEach(async () => {
    await older.close();
    await newer.close();
  });

  function addTask({ log }: ProjectorHarness, id: string): void {
    const schedule = { anchor: '2026-01-01T00:00:00.000Z', next_fire_at: null };
    log.add(`task-${id}`, 'TaskCreated', { definition: definition(), ...schedule });
  }

  /** Reads the tasks from a log, with the views of the newer one. */
  async function tasksIn({ store }: ProjectorHarness): Promise<readonly string[]> {
    const tasks: string[] = [];
    const { signal } = new AbortController();
    for await (const { taskId } of currentSchedules(store, newer.readModel, signal)) {
      tasks.push(taskId);
    }
    return tasks.sort();
  }

  it('combines the view with later events', async () => {
    addTask(newer, 'seen');
    const head = await newer.append();
    newer.start([dueProjection]);
    await newer.reached(dueProjection, head);
    await newer.stop();
    addTask(newer, 'since');
    await newer.append();
    expect(await tasksIn(newer)).to.deep.equal(['seen', 'since']);
  });

  it('comes from the log alone if the view belongs to another log', async () => {
    addTask(newer, 'lost-1');
    addTask(newer, 'lost-2');
    const head = await newer.append();
    newer.start([dueProjection]);
    await newer.reached(dueProjection, head);
    await newer.stop();
    addTask(older, 'kept');
    await older.append();
    expect(await tasksIn(older)).to.deep.equal(['kept']);
    for (const id of ['new-1', 'new-2']) addTask(older, id);
    await older.append();
    expect(await tasksIn(older)).to.deep.equal(['kept', 'new-1', 'new-2']);
  });
});
