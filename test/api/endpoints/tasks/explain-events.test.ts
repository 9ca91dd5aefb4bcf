import { expect } from 'chai';
import { toIso } from '../../../../domain/clock.ts';
import { useRunningApi } from '../../../support/running-api.ts';
import { ExplainedWorld, hour, minute } from './explaining.ts';

describe('an explanation of triggers other than the schedule', () => {
  const api = useRunningApi();
  let world: ExplainedWorld;
  before(async () => {
    world = await ExplainedWorld.open(api(), '2027-02-01T07:30:00.000Z');
  });

  it('of an event task names the event, even if many manual runs are nearer', async () => {
    const task = await world.create({ schedule_kind: 'event', schedule_expr: 'orders.*' });
    const at = world.nextHour;
    for (let seconds = 1; seconds <= 4; seconds += 1) {
      await world.until(at + seconds * 1000).command(task, 'run_now');
    }
    const run = await world.until(at + 10_000).trigger(task, 'orders.created');
    await world.person.client.post('/agents', { name: `after ${run}`, scopes: [] });
    world.until(at + 5 * minute);
    const answer = await world.explain(task, at);
    expect(answer.json, answer.text).to.include({ fired: true, reason: 'fired' });
    expect(answer.at('run_id')).to.equal(run);
  });

  it('of an event task does not count runs that it has not read', async () => {
    const task = await world.create({ schedule_kind: 'event', schedule_expr: 'orders.*' });
    const at = world.nextHour;
    const runs: string[] = [];
    for (let seconds = 0; seconds < 8; seconds += 1) {
      runs.push(await world.until(at + seconds * 1000).trigger(task, 'orders.created'));
    }
    await world.person.client.post('/agents', { name: `after ${runs[7]}`, scopes: [] });
    const answer = await world.until(at + 5 * minute).explain(task, at + 7_500);
    expect(answer.at('run_id')).to.equal(runs[7]);
    expect(answer.textAt('message')).to.contain(
      'more runs were triggered; this one is the nearest',
    );
  });

  it('reports only times outside the bounds as out of bounds', async () => {
    const at = world.nextHour;
    world.until(at + 500);
    const task = await world.create({ schedule_expr: '* * * * *', ends_at: toIso(at + 24 * hour) });
    const answer = await world.until(at + 2000).explain(task, at + 700);
    expect(answer.at('reason'), answer.text).to.equal('not_in_schedule');
  });
});
