import { expect } from 'chai';
import { checkViews } from '../../../app/doctor/store-checks.ts';

describe('the lag of views, as svc doctor looks at it', () => {
  /** @param end of the log when it is looked at again; default: the head */
  const findings = (checkpoint: string, head: string, end = head) => {
    const stores = {
      store: {
        head: async () => head,
        reaches: async (position: string) => position <= end,
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
