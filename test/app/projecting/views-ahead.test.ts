import { expect } from 'chai';
import { checkViews } from '../../../app/doctor/store-checks.ts';

describe('the lag of views in svc doctor', () => {
  /**
   * @param end of the log when it is checked again; default: the head
   * @param isIn whether the log has had the view's last event
   */
  const findings = (checkpoint: string, head: string, end = head, isIn = true) => {
    const stores = {
      store: {
        head: async () => head,
        reaches: async (position: string) => position <= end,
        hasHad: async () => isIn,
        readAll: async () => [],
      },
      readModel: {
        liveGeneration: async () => 1,
        checkpoint: async () => checkpoint,
        landmark: async () => ({ stream: 'run-1', revision: 3, id: 'event-1', createdAt: '' }),
      },
      coordination: { alive: async () => [], recall: async () => null },
    };
    return checkViews(stores as never, 0);
  };

  it('does not mistake a log that has advanced for another log', async () => {
    const found = await findings('0000000000000012', '0000000000000010', '0000000000000013');
    expect(found.map(({ verdict }) => verdict)).to.deep.equal(['ok']);
  });

  it('says what to do about views of another log', async () => {
    const [first] = await findings('0000000000000012', '0000000000000010');
    expect(first?.verdict).to.equal('fault');
    expect(first?.found).to.include('is ahead of the log');
    expect(first?.advice).to.include('rebuilds them');
  });

  it('says the same if this log has grown beyond those views', async () => {
    const [first] = await findings('0000000000000012', '0000000000000020', undefined, false);
    expect(first?.verdict).to.equal('fault');
    expect(first?.found).to.include(
      'belongs to another log: it has a different revision 3 of run-1',
    );
    expect(first?.advice).to.include('rebuilds them');
  });
});
