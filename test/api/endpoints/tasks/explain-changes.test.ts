import { expect } from 'chai';
import { useRunningApi } from '../../../support/running-api.ts';
import { expectReason, expectWords, ExplainedWorld, minute } from './explaining.ts';

describe('an explanation of a fire whose task changed before the decision', () => {
  const api = useRunningApi();
  let world: ExplainedWorld;
  before(async () => {
    world = await ExplainedWorld.open(api(), '2027-02-01T07:30:00.000Z');
  });

  it('says that a fire due before a pause was undecided until then, and names the pause', async () => {
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
      expectWords(waits, 'No scheduler has handled it', 'look at it', 'once the task is resumed');
    }
    world.until(at + minute);
    for (const task of tasks) {
      await world.command(task, 'resume');
      await world.decide(task);
    }
    const [ran = '', missed = ''] = tasks;
    const late = await world.explain(ran, at);
    expectReason(late, 'fired', true);
    expectWords(late, 'no scheduler had handled it before the task was paused', 'look at it');
    const skipped = await world.explain(missed, at);
    expectReason(skipped, 'missed');
    expectWords(skipped, 'no scheduler had handled it before the task was paused', 'look at it');
    expectWords(skipped, 'misfire_policy skip');
  });

  describe('while it was snoozed', () => {
    const minutely = { schedule_expr: '* * * * *' };
    /**
     * A task whose fire at the next full hour is snoozed by 150 s, explained 30 s after that hour.
     */
    const snoozed = async (fields: object = {}): Promise<readonly [string, number]> => {
      const task = await world.create({ ...minutely, ...fields });
      const at = world.nextHour;
      await world.until(at - minute + 20).decide(task);
      await world.command(task, 'snooze', { delay_seconds: 150, reason: 'lunch' });
      world.until(at + 90_000);
      return [task, at];
    };

    it('names the cancellation during the snooze', async () => {
      const [task, at] = await snoozed();
      await world.command(task, 'cancel', undefined, 'no longer wanted');
      const own = await world.explain(task, at);
      expectReason(own, 'snoozed');
      expectWords(own, 'lunch', 'canceled the task before that', 'no longer wanted');
      const behind = await world.explain(task, at + minute);
      expectReason(behind, 'snoozed');
      expectWords(behind, 'lunch', 'does not run');
      expectReason(await world.explain(task, at + 2 * minute), 'not_in_schedule');
    });

    it('names a schedule change that ended the snooze when the fire was already late', async () => {
      const [task, at] = await snoozed({ misfire_policy: 'skip', misfire_grace_seconds: 20 });
      await world.person.client.put(`/tasks/${task}`, { schedule_expr: '30 * * * *' });
      await world.decide(task);
      const own = await world.explain(task, at);
      expectReason(own, 'missed');
      expectWords(own, 'late when the snooze ended', 'lunch', 'changed the schedule at');
      expectWords(own, 'grace of 20 s', 'misfire_policy skip');
      expectReason(await world.explain(task, at + minute), 'snoozed');
    });

    it('names the run that followed when a schedule change ended the snooze', async () => {
      const [task, at] = await snoozed({ misfire_grace_seconds: 600 });
      await world.person.client.put(`/tasks/${task}`, { schedule_expr: '30 * * * *' });
      expect(await world.decide(task)).to.have.lengthOf(1);
      const own = await world.explain(task, at);
      expectReason(own, 'fired', true);
      expectWords(own, 'lunch', 'changed the schedule at', 'ended the snooze');
    });

    it('names a pause that delayed the fire at its snoozed time', async () => {
      const [task, at] = await snoozed();
      await world.command(task, 'pause', undefined, 'the database moves');
      const ahead = await world.explain(task, at);
      expectReason(ahead, 'snoozed');
      expectWords(ahead, 'lunch', 'the database moves', 'Unless it is resumed before');
      world.until(at + 190_000);
      const held = await world.explain(task, at);
      expectReason(held, 'paused');
      expectWords(held, 'the database moves', 'holds back');
      expectReason(await world.explain(task, at + minute), 'snoozed');
      expectReason(await world.explain(task, at + 3 * minute), 'paused');
      await world.command(task, 'resume?missed=all');
      expect(await world.decide(task)).to.have.lengthOf(2);
      const ran = await world.explain(task, at);
      expectReason(ran, 'fired', true);
      expectWords(ran, 'the database moves', 'missed=all');
      const behind = await world.explain(task, at + minute);
      expectReason(behind, 'snoozed');
      expectWords(behind, 'lunch');
    });

    it('names the snooze of a fire that a pause dropped', async () => {
      const [task, at] = await snoozed();
      await world.command(task, 'pause', undefined, 'the database moves');
      await world.until(at + 190_000).command(task, 'resume');
      await world.decide(task);
      const own = await world.explain(task, at);
      expectReason(own, 'paused');
      expectWords(own, 'the database moves', 'missed=skip', 'lunch');
    });

    it('says that a fire was decided too late after its snoozed time, and when it was due', async () => {
      const [task, at] = await snoozed({ misfire_policy: 'skip', misfire_grace_seconds: 20 });
      await world.until(at + 270_000).decide(task);
      const own = await world.explain(task, at);
      expectReason(own, 'missed');
      expectWords(own, '(2 min)', 'lunch', 'decided 2 min late');
    });
  });
});
