import { expect } from 'chai';
import { useRunningApi } from '../../../support/running-api.ts';
import { ExplainedWorld } from './explaining.ts';

describe('an explanation near a clock change', () => {
  const api = useRunningApi();
  let world: ExplainedWorld;
  before(async () => {
    world = await ExplainedWorld.open(api(), '2027-02-01T07:30:00.000Z');
  });

  it('says that the change skipped the requested time or moved its fire', async () => {
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
});
