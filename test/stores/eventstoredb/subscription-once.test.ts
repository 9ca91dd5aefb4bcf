import { expect } from 'chai';
import { BEGINNING, EventStoreError, type EventStore } from '../../../domain/event-store.ts';
import {
  hastyTimings,
  numbered,
  numbersOf,
  onWorkbench,
  take,
} from '../../support/eventstoredb-server/workbench.ts';

describe('a subscription to EventStoreDB with once', () => {
  const bench = onWorkbench();
  let store: EventStore;
  beforeEach(async () => {
    store = await bench().open();
    await store.append('task-1', [numbered(0), numbered(1)], 'none');
  });

  const once = (from = store): ReturnType<EventStore['subscribe']> =>
    from.subscribe({ after: BEGINNING, once: true, signal: new AbortController().signal });

  it('reports that the server is down, and ends', async () => {
    bench().server.stop();
    const hasty = await bench().open({ timings: hastyTimings });
    const refused: unknown = await take(once(hasty), () => false).catch((error: unknown) => error);
    expect(refused).to.be.instanceOf(EventStoreError).with.property('code', 'UNAVAILABLE');
  });

  it('retries a few times with a server that rejects it', async () => {
    bench().server.faults.onNextReads('unavailable', 'unavailable');
    const { events } = await take(once(), () => false);
    expect(numbersOf(events)).to.deep.equal([0, 1]);
  });
});
