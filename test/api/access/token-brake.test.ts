import { expect } from 'chai';
import { TooManyWaitingError } from '../../../api/access/fair-turns.ts';
import { hashSecret, verifySecret } from '../../../api/access/secrets.ts';
import { limitFailures } from '../../../api/access/token-brake.ts';
import { HttpError } from '../../../api/errors.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

describe('the limit on guessing', () => {
  const setUp = (sums = new Map<string, number>()) => {
    const count = (name: string, by: number, remaining: number) => {
      const sum = (sums.get(name) ?? 0) + by;
      sums.set(name, sum);
      return Promise.resolve({ sum, remaining });
    };
    const counted = (name: string, remaining: number) => {
      const sum = sums.get(name);
      return Promise.resolve(sum === undefined ? null : { sum, remaining });
    };
    const dependencies = { coordination: { count, readCount: counted }, clock: new VirtualClock() };
    return (address: string, attempt: () => Promise<string | null>) =>
      limitFailures(dependencies, { agentId: 'a', address }, attempt).catch(
        (error: unknown) => error,
      );
  };
  const wrong = (): Promise<null> => Promise.resolve(null);
  const right = (): Promise<string> => Promise.resolve('right');

  it('treats an IPv6 network as one address, because its owner could guess from a new address each time', async () => {
    const attempt = setUp();
    for (let host = 1; host <= 9; host += 1) {
      expect(await attempt(`2001:db8:0:1::${host}`, wrong)).to.equal(null);
    }
    const tenth = await attempt('2001:db8:0:2::10', wrong);
    expect(tenth).to.be.instanceOf(HttpError).and.include({ code: 'rate_limit_exceeded' });
    expect(await attempt('2001:db8:0:1::11', right)).to.be.instanceOf(HttpError);
    expect(await attempt('2001:db8:1::1', right)).to.equal('right');
  });

  it('responds with 429 if too many attempts of an address wait', async () => {
    const attempt = setUp();
    const refused = await attempt('192.0.2.1', () => Promise.reject(new TooManyWaitingError(7)));
    expect(refused).to.be.instanceOf(HttpError).and.include({ code: 'rate_limit_exceeded' });
    const { details, headers } = refused as HttpError;
    expect(details).to.include({ limit: 7, window: '1s' });
    expect(headers).to.deep.equal({ 'Retry-After': '1' });
    expect(await attempt('192.0.2.1', right)).to.equal('right');
  });

  it('does not record attempts with a valid or unchecked secret', async () => {
    const sums = new Map<string, number>();
    const attempt = setUp(sums);
    await attempt('192.0.2.1', right);
    await attempt('192.0.2.1', () => Promise.reject(new TooManyWaitingError(7)));
    expect([...sums]).to.deep.equal([]);
    await attempt('192.0.2.1', wrong);
    expect([...sums.values()]).to.deep.equal([1]);
  });
});

describe('secret checks', () => {
  it('of one address take their turn even if another address keeps sending', async () => {
    const hash = await hashSecret('the secret of an agent');
    let others = 0;
    const flood = Array.from({ length: 12 }, async () => {
      await verifySecret('a guess', hash, '192.0.2.1');
      others += 1;
    });
    expect(await verifySecret('the secret of an agent', hash, '192.0.2.2')).to.equal(true);
    expect(others).to.be.lessThan(6);
    await Promise.all(flood);
  });
});
