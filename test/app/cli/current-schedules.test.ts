import { expect } from 'chai';
import { currentSchedules } from '../../../app/cli/store/current-schedules.ts';
import { dueProjection } from '../../../projections/views/due.ts';
import { ProjectorHarness } from '../../projections/projector-harness.ts';
import { definition } from '../../projections/recorded.ts';

describe('the rhythms of all tasks, for who asks outside of the service', () => {
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
    const rhythm = { anchor: '2026-01-01T00:00:00.000Z', next_fire_at: null };
    log.add(`task-${id}`, 'TaskCreated', { definition: definition(), ...rhythm });
  }

  /** By the log of one and the views of the newer. */
  async function tasksIn({ store }: ProjectorHarness): Promise<readonly string[]> {
    const tasks: string[] = [];
    const { signal } = new AbortController();
    for await (const { taskId } of currentSchedules(store, newer.readModel, signal)) {
      tasks.push(taskId);
    }
    return tasks.sort();
  }

  it('are those of the view and what came since', async () => {
    addTask(newer, 'seen');
    const head = await newer.append();
    newer.start([dueProjection]);
    await newer.reached(dueProjection, head);
    await newer.stop();
    addTask(newer, 'since');
    await newer.append();
    expect(await tasksIn(newer)).to.deep.equal(['seen', 'since']);
  });

  it('are those of the log alone where the view is of another one, whether that is longer or not', async () => {
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
