import { expect } from 'chai';
import { parseLine } from '../../../app/archive/event-lines.ts';
import { contentOf, placeOf } from '../../../domain/events/event-line.ts';

describe('an event in an archive', () => {
  const event = {
    stream: 'task-1',
    revision: 0,
    id: '01a1fc11-0505-734a-8920-9c4c55a40f65',
    type: 'TaskCreated',
    metadata: '{"actor":"a"}',
  };
  const lineOf = (data: string): string => {
    const place = { position: '0000000000000001', createdAt: '2026-01-01T00:00:00.000Z' };
    return contentOf({ ...event, data }) + placeOf(place);
  };

  it('keeps every number of the log, even those that requests cannot have', () => {
    // A float that JavaScript writes with digits only, and integers that earlier releases rounded.
    const values = [1e20, -9007199254740992, 7615917337495251000, 1.5e300, 5e-324, 0.1];
    const data = JSON.stringify({ payload: { n: values } });
    expect(data).to.include('100000000000000000000,');
    expect(parseLine(lineOf(data), 1)).to.deep.equal({ ...event, data });
  });
});
