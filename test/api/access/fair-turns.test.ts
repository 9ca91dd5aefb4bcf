import { expect } from 'chai';
import { FairTurns, TooManyWaitingError } from '../../../api/access/fair-turns.ts';
import { settle } from '../../support/virtual-clock.ts';

describe('fair turns', () => {
  const setUp = () => {
    const turns = new FairTurns(2);
    const begun: string[] = [];
    const ends = new Map<string, (fault?: Error) => void>();
    const ask = (name: string, mostWaiting = 10): Promise<string> =>
      turns.take(name.slice(0, 1), mostWaiting, () => {
        begun.push(name);
        return new Promise((resolve, reject) => {
          ends.set(name, (fault) => (fault === undefined ? resolve(name) : reject(fault)));
        });
      });
    const end = async (name: string, fault?: Error): Promise<void> => {
      ends.get(name)?.(fault);
      await settle();
    };
    return { begun, ask, end };
  };

  it('start a limited amount of work at a time, and take waiting owners in turn', async () => {
    const { begun, ask, end } = setUp();
    const asked = ['a1', 'a2', 'a3', 'a4', 'a5', 'b1', 'b2', 'c1'].map((name) => ask(name));
    await settle();
    expect(begun).to.deep.equal(['a1', 'a2']);
    for (let ended = 0; ended < asked.length; ended += 1) await end(begun[ended] ?? '');
    expect(begun).to.deep.equal(['a1', 'a2', 'a3', 'b1', 'c1', 'a4', 'b2', 'a5']);
    expect(await Promise.all(asked)).to.have.lengthOf(8);
    const last = ask('d1');
    await settle();
    expect(begun.at(-1)).to.equal('d1');
    await Promise.all([last, end('d1')]);
  });

  it('continue after work that fails', async () => {
    const { begun, ask, end } = setUp();
    const [first] = ['a1', 'a2', 'a3'].map((name) => ask(name));
    const failure = first?.catch((error: unknown) => error);
    await settle();
    const fault = new Error('no');
    await end('a1', fault);
    expect(await failure).to.equal(fault);
    expect(begun).to.deep.equal(['a1', 'a2', 'a3']);
  });

  it('reject waiting work above the limit of its owner, but still accept that of other owners', async () => {
    const { begun, ask, end } = setUp();
    for (const name of ['a1', 'a2', 'a3', 'a4']) void ask(name, 2);
    const refused = await ask('a5', 2).catch((error: unknown) => error);
    expect(refused).to.be.instanceOf(TooManyWaitingError).and.include({ limit: 2 });
    void ask('b1', 2);
    for (const name of ['a1', 'a2', 'a3', 'b1']) await end(name);
    expect(begun).to.deep.equal(['a1', 'a2', 'a3', 'b1', 'a4']);
  });
});
