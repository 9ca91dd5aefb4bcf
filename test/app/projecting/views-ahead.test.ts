import { expect } from 'chai';
import { checkViews } from '../../../app/doctor/store-checks.ts';

describe('the lag of views, as svc doctor looks at it', () => {
  /** @param heads of the log, one after the other; the last for all that follow */
  const findings = (checkpoint: string, ...heads: readonly string[]) => {
    const left = [...heads];
    const stores = {
      store: {
        head: async () => (left.length > 1 ? left.shift() : left[0]),
        readAll: async () => [],
      },
      readModel: { liveGeneration: async () => 1, checkpoint: async () => checkpoint },
      coordination: { alive: async () => [], recall: async () => null },
    };
    return checkViews(stores as never, 0);
  };

  it('takes a log that has gone on meanwhile for none of another', async () => {
    const found = await findings('0000000000000012', '0000000000000010', '0000000000000013');
    expect(found.map(({ verdict }) => verdict)).to.deep.equal(['ok']);
  });

  it('says what to do about views of another log', async () => {
    const [first] = await findings('0000000000000012', '0000000000000010');
    expect(first?.verdict).to.equal('fault');
    expect(first?.found).to.include('is ahead of the log');
    expect(first?.advice).to.include('makes them anew');
  });
});
