import { expect } from 'chai';
import { pauseTaskCommand, resumeTaskCommand } from '../../../domain/tasks/task-commands.ts';
import { BackfillWorld } from './backfill-harness.ts';
import { minute, START } from '../scheduler-world.ts';
import { WorkerWorld } from '../runs/worker-world.ts';

describe('the runs of a large backfill', () => {
  let workers: WorkerWorld;
  let all: BackfillWorld;

  beforeEach(async () => {
    workers = await WorkerWorld.open();
    all = new BackfillWorld(workers.world);
    const cron = { schedule_kind: 'cron', schedule_expr: '* * * * *', priority: 9 } as const;
    await workers.task('t', ['hold:s'], cron);
    await all.start('backfills');
    await workers.start('w', { slots: 1 });
  });

  afterEach(async () => {
    await all.close();
    await workers.close();
  });

  const backfill = (): Promise<void> =>
    all.request('b', 't', { from: START - 999 * minute, to: START }, { concurrency: 100 });

  /** Lets the run in the worker continue. */
  const goOn = async (): Promise<void> => {
    await workers.let('w', workers.effects.at(-1)?.run ?? '', 's');
  };
  const triggers = (): Promise<readonly string[]> =>
    Promise.all(workers.effects.map(async ({ run }) => (await workers.run(run)).request.trigger));

  it('start after every live fire, even one of the lowest priority', async () => {
    await workers.world.start('scheduler');
    await backfill();
    await workers.clock.advance(2 * minute);
    for (let n = 0; n < 3; n += 1) await goOn();
    expect(await triggers()).to.deep.equal(['backfill', 'schedule', 'schedule', 'backfill']);
  });

  it('start only while their task is not paused', async () => {
    await backfill();
    await pauseTaskCommand(workers.world.command('t'));
    await workers.world.idle();
    await goOn();
    await workers.clock.advance(minute);
    expect(await triggers()).to.deep.equal(['backfill']);
    await resumeTaskCommand({ ...workers.world.command('t'), missed: 'skip' });
    await workers.clock.advance(10_000);
    expect(await triggers()).to.deep.equal(['backfill', 'backfill']);
  });
});
