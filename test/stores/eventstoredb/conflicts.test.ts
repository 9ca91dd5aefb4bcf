import { expect } from 'chai';
import { isConflict, type EventStore } from '../../../domain/event-store.ts';
import type { Timings } from '../../../stores/eventstoredb/connecting/timings.ts';
import {
  hastyTimings,
  numbered,
  numbersOf,
  onWorkbench,
} from '../../support/eventstoredb-server/workbench.ts';
import { eventually } from '../../support/signals.ts';

/** A server reports conflicts with written events, but shows these only once they are replicated and indexed. */
describe('a conflict in EventStoreDB with events that are not visible yet', () => {
  const bench = onWorkbench();
  let store: EventStore;
  beforeEach(async () => {
    store = await bench().open({ timings: { appendAttemptMs: 20_000, appendOverallMs: 20_000 } });
  });

  /** The events that the loser of a race reads once it knows of the conflict. */
  const found = async (
    stream: string,
    expected: 'none' | number,
    timings: Partial<Timings> = {},
  ): Promise<readonly number[]> => {
    const other = await bench().open({ timings });
    const failure: unknown = await other.append(stream, [numbered(9)], expected).then(
      () => 'it was written',
      (error: unknown) => error,
    );
    expect(isConflict(failure), String(failure)).to.equal(true);
    return numbersOf(await other.readStream(stream));
  };

  /** Makes hidden events visible after the first read that missed them. */
  const showLater = async (): Promise<void> => {
    const { server } = bench();
    const { reads } = server;
    await eventually(() => server.reads >= reads + 3, {
      what: 'the losing append to read the stream',
    });
    server.log.show();
  };

  it('is reported once they can be read', async () => {
    const { log, appends } = bench().server;
    await store.append('task-1', [numbered(1)], 'none');
    log.holdBack();
    const winner = store.append('task-1', [numbered(2)], 0);
    await eventually(() => appends.length === 2, { what: 'the winner to be written' });
    const [seen] = await Promise.all([found('task-1', 0), showLater()]);
    expect(seen).to.deep.equal([1, 2]);
    expect((await winner).revision).to.equal(1);
  });

  it('is reported once they can be read, for a new stream', async () => {
    const { log, appends } = bench().server;
    log.holdBack();
    const winner = store.append('task-1', [numbered(1)], 'none');
    await eventually(() => appends.length === 1, { what: 'the winner to be written' });
    const [seen] = await Promise.all([found('task-1', 'none'), showLater()]);
    expect(seen).to.deep.equal([1]);
    expect((await winner).revision).to.equal(0);
  });

  it('is reported after a while when they never become visible', async () => {
    const { log, appends } = bench().server;
    log.holdBack();
    const winner = store.append('task-1', [numbered(1)], 'none');
    await eventually(() => appends.length === 1, { what: 'the winner to be written' });
    const { readMs } = hastyTimings;
    expect(await found('task-1', 'none', { readMs })).to.deep.equal([]);
    log.show();
    await winner;
  });

  it('is reported at once for a wholly truncated stream', async () => {
    await store.append('task-1', [numbered(1), numbered(2)], 'none');
    await store.truncate('task-1', 2);
    const { server } = bench();
    const { reads } = server;
    expect(await found('task-1', 'none')).to.deep.equal([]);
    expect(server.reads - reads).to.be.at.most(5);
  });
});
