import { expect } from 'chai';
import { BEGINNING, type Position, type RecordedEvent } from '../../../domain/event-store.ts';
import type { Coordination } from '../../../scheduler/coordination.ts';
import { LogCheckpoint } from '../../../scheduler/processes/log-checkpoint.ts';

const event = {
  stream: 'topic-a',
  revision: 4,
  id: 'event-1',
  createdAt: '2026-01-01T00:00:00.000Z',
  position: '05',
} as RecordedEvent;

describe('a remembered position in the log', () => {
  const remembered = new Map<string, string>();
  const coordination = {
    recall: async (name: string) => remembered.get(name) ?? null,
    remember: async (name: string, value: string) => remembered.set(name, value).size > 0,
  } as unknown as Coordination;

  beforeEach(() => remembered.clear());

  /** A checkpoint in a log that contains only the event. @param had whether this log ever had the remembered event */
  const placeIn = (had: boolean, end = '09'): LogCheckpoint => {
    const store = {
      reaches: async (position: Position) => position <= end,
      hasHad: async () => had,
      readAllBackwards: async (before: Position | null) =>
        event.position < (before ?? '') ? [event] : [],
      readAll: async (after: Position) => (event.position > after ? [event] : []),
    };
    return new LogCheckpoint(coordination, store, 'place');
  };

  const recall = (had: boolean, end?: string): Promise<Position> => placeIn(had, end).load();

  const remember = (position: Position, last: RecordedEvent | null): Promise<void> => {
    const place = placeIn(true);
    place.observe(last === null ? [] : [last]);
    return place.save(position, 1);
  };

  it('is the beginning if there is none, or if the log does not reach it', async () => {
    expect(await recall(true)).to.equal(BEGINNING);
    await remember('07', event);
    expect(await recall(true, '06')).to.equal(BEGINNING);
  });

  it('is the stored one, also of a release that stores no event', async () => {
    remembered.set('place', '07');
    expect(await recall(false)).to.equal('07');
    await remember('06', event);
    remembered.set('place', '07');
    expect(await recall(true)).to.equal('07');
    await remember('04', event);
    expect(await recall(true)).to.equal('04');
  });

  it('is the beginning in a log that never had the event', async () => {
    await remember('07', event);
    expect(await recall(false)).to.equal(BEGINNING);
  });

  it('is that of the event, if other writers moved it', async () => {
    await remember('07', event);
    expect(await recall(true)).to.equal('05');
  });

  it('is identified by the event before it, if no followed event came', async () => {
    await remember('07', null);
    expect(await recall(true)).to.equal('05');
    expect(await recall(false)).to.equal(BEGINNING);
  });

  it('is identified by the event at the position, so that this is not read again', async () => {
    await remember('05', event);
    expect(await recall(true)).to.equal('05');
    await remember('05', { ...event, position: '03' });
    expect(await recall(true)).to.equal('05');
    await remember('05', null);
    expect(await recall(true)).to.equal('05');
    expect(await recall(false)).to.equal(BEGINNING);
  });
});
