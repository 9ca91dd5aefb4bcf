import { expect } from 'chai';
import { BEGINNING, EventStoreError, type EventStore } from '../../../domain/event-store.ts';
import {
  numbered,
  numbersOf,
  onWorkbench,
  take,
} from '../../support/eventstoredb-server/workbench.ts';

describe('a log in EventStoreDB that is followed once, up to its end', () => {
  const bench = onWorkbench();
  let store: EventStore;
  beforeEach(async () => {
    store = await bench().open();
    await store.append('task-1', [numbered(0), numbered(1)], 'none');
  });

  const once = (): ReturnType<EventStore['subscribe']> =>
    store.subscribe({ after: BEGINNING, once: true, signal: new AbortController().signal });

  it('says that the server is away, and ends', async () => {
    bench().server.stop();
    const refused: unknown = await take(once(), () => false).catch((error: unknown) => error);
    expect(refused).to.be.instanceOf(EventStoreError).with.property('code', 'UNAVAILABLE');
  });

  it('comes back a few times to a server that refuses it', async () => {
    bench().server.faults.onNextSubscriptions('unavailable', 'unavailable');
    const { events } = await take(once(), () => false);
    expect(numbersOf(events)).to.deep.equal([0, 1]);
  });
});
