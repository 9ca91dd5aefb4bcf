import { expect } from 'chai';
import { useRunningApi, type SignedIn } from '../../support/running-api.ts';

describe('a hold over HTTP', () => {
  const api = useRunningApi();
  let operator: SignedIn;
  before(async () => {
    operator = await api().signIn(['ops'], 'olga');
  });

  it('shows who holds the service and why, until it is released', async () => {
    const { client, id } = operator;
    const before = await client.get('/operations');
    expect(before.json).to.deep.equal({ held: false, hold: null, released: null });
    const blank = await client.post('/operations/hold', { reason: ' \t' });
    expect(blank.status).to.equal(400);
    expect(blank.at('details.field')).to.equal('reason');
    const held = await client.post('/operations/hold', { reason: 'a new mail server' });
    expect(held.status, held.text).to.equal(200);
    const again = await client.post('/operations/hold', { reason: 'me too' });
    expect(again.status).to.equal(409);
    expect(again.at('details.by')).to.equal(id);
    const { hold, ...rest } = (await client.get('/operations')).json as { hold: object };
    expect(hold).to.deep.include({ reason: 'a new mail server', by: id, by_name: 'olga' });
    expect(rest).to.deep.equal({ held: true, released: null });
    const released = await client.post('/operations/release', { missed: 'skip' });
    expect(released.status, released.text).to.equal(200);
    const after = await client.get('/operations');
    expect(after.at('held')).to.equal(false);
    expect(after.at('released.missed')).to.equal('skip');
    expect((await client.post('/operations/release')).status).to.equal(409);
  });
});
