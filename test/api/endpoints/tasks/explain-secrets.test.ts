import { expect } from 'chai';
import { toIso } from '../../../../domain/clock.ts';
import { useRunningApi } from '../../../support/running-api.ts';
import { ExplainedWorld, hour } from './explaining.ts';

describe('an explanation of a fire that is still to come', () => {
  const api = useRunningApi();
  let world: ExplainedWorld;
  let task: string;
  before(async () => {
    world = await ExplainedWorld.open(api(), '2027-02-01T07:30:00.000Z');
    const expires_at = toIso(world.nextHour + hour);
    await world.person.client.put('/secrets/API_TOKEN', { value: 'hush', expires_at });
    await world.person.client.put('/secrets/LASTING', { value: 'hush' });
    const headers = { one: '${secrets.API_TOKEN}', other: '${secrets.LASTING}' };
    const step = { uses: 'http.request', with: { url: 'http://a.example/', headers } };
    task = await world.create({ payload: { pipeline: [step] } });
  });

  const explained = async (at: number): Promise<string> =>
    (await world.explain(task, at)).textAt('message');

  it('names a secret that will have expired by then', async () => {
    const at = world.nextHour;
    expect(await explained(at)).to.match(/it will run\.$/);
    expect(await explained(at + hour)).to.include(
      'The secret API_TOKEN will expire at 2027-02-01T09:00:00Z: steps that use it fail until it is set again.',
    );
    expect(await explained(at + hour)).not.to.include('LASTING');
  });

  it('names a secret that has expired', async () => {
    world.until(world.nextHour + hour + 1);
    expect(await explained(world.nextHour)).to.include(
      'The secret API_TOKEN expired at 2027-02-01T09:00:00Z: steps that use it fail until it is set again.',
    );
  });
});
