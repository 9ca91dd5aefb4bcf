import { useRunningApi } from '../../../support/running-api.ts';
import { expectReason, expectWords, ExplainedWorld, minute } from './explaining.ts';

describe('an explanation of a fire whose task was changed before it was decided', () => {
  const api = useRunningApi();
  let world: ExplainedWorld;
  before(async () => {
    world = await ExplainedWorld.open(api(), '2027-02-01T07:30:00.000Z');
  });

  it('says of one that was due before a pause that nothing had come to it, and then of the pause', async () => {
    const tasks: string[] = [];
    for (const misfire_policy of ['latest', 'skip']) {
      tasks.push(await world.create({ misfire_policy, misfire_grace_seconds: 2 }));
    }
    const at = world.nextHour;
    world.until(at + 10_000);
    for (const task of tasks) {
      await world.command(task, 'pause', undefined, 'look at it');
      const waits = await world.explain(task, at);
      expectReason(waits, null);
      expectWords(waits, 'no scheduler has come to it', 'look at it', 'once it is resumed');
    }
    world.until(at + minute);
    for (const task of tasks) {
      await world.command(task, 'resume');
      await world.decide(task);
    }
    const [ran = '', missed = ''] = tasks;
    const late = await world.explain(ran, at);
    expectReason(late, 'fired', true);
    expectWords(late, 'as no scheduler had come to it before the task was paused', 'look at it');
    const skipped = await world.explain(missed, at);
    expectReason(skipped, 'missed');
    expectWords(skipped, 'no scheduler had come to it before the task was paused', 'look at it');
    expectWords(skipped, 'misfire_policy skip');
  });
});
