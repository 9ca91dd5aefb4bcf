import { expect } from 'chai';
import { useRunningApi } from '../../../support/running-api.ts';
import { expectReason, expectWords, ExplainedWorld, hour } from './explaining.ts';

describe('an explanation in a time zone', () => {
  const api = useRunningApi();
  let world: ExplainedWorld;
  before(async () => {
    world = await ExplainedWorld.open(api(), '2027-02-01T07:30:00.000Z');
  });

  it('says that a clock change skipped the requested time or moved its fire', async () => {
    const zone = { timezone: 'America/Havana' };
    const stepped = await world.create({ ...zone, schedule_expr: '0 */12 * * *' });
    const missing = '2090-03-12T00:00:00';
    const near = `A clock change is near: ${missing} does not exist in America/Havana, where the clock goes forward`;
    const leftOut = await world.explain(stepped, missing);
    expect(leftOut.at('reason')).to.equal('not_in_schedule');
    expect(leftOut.textAt('message')).to.include(`${near}: left out.`);
    const fixed = await world.create({ ...zone, schedule_expr: '0 0 * * *' });
    const moved = await world.explain(fixed, missing);
    expect(moved.textAt('message')).to.include(`${near}: fires by the offset before the change`);
  });

  it('names the version of the time zone database of a fire or a missed one, if it was recorded', async () => {
    const task = await world.create({ schedule_expr: '0 * * * *', timezone: 'Europe/Berlin' });
    const at = world.nextHour;
    const says = (version: string): string =>
      `It was decided with version ${version} of the time zone database.`;
    await world.until(at + 20).decide(task, '2025b');
    await world.until(at + 4 * hour + 20).decide(task, '2026a');
    await world.until(at + 5 * hour + 20).decide(task);
    expectWords(await world.explain(task, at), says('2025b'));
    const missed = await world.explain(task, at + hour);
    expectReason(missed, 'missed');
    expectWords(missed, says('2026a'));
    const older = await world.explain(task, at + 5 * hour);
    expectReason(older, 'fired', true);
    expect(older.textAt('message')).to.not.include('time zone database');
  });
});
