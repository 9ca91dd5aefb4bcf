import { expect } from 'chai';
import type { EventStore } from '../../../domain/event-store.ts';
import { ANY, Log } from '../../support/eventstoredb-server/log.ts';
import { numbered, onWorkbench } from '../../support/eventstoredb-server/workbench.ts';
import { eventually } from '../../support/signals.ts';

describe('an EventStoreDB server that comes back with another log', () => {
  const bench = onWorkbench();
  let store: EventStore;
  let stop: AbortController;
  let delivered: string[];
  let following: Promise<void>;

  beforeEach(async () => {
    store = await bench().open();
    stop = new AbortController();
    delivered = [];
    following = follow();
    for (let n = 0; n < 4; n += 1)
      await store.append('task-1', [numbered(n)], n === 0 ? 'none' : n - 1);
    await eventually(() => delivered.length === 4);
  });
  afterEach(async () => {
    stop.abort();
    await following;
  });

  async function follow(): Promise<void> {
    try {
      for await (const message of store.subscribe({ after: '', signal: stop.signal })) {
        if (message.kind === 'events') delivered.push(...message.events.map(({ id }) => id));
      }
    } catch (error) {
      // The workbench closes the log first.
      expect(error).to.include({ code: 'UNAVAILABLE' });
    }
  }

  /** The first events of the log, as in a backup. */
  function olderLog(events: number): Log {
    const older = new Log();
    for (const event of bench().server.log.all.slice(0, events))
      older.append(event.stream, [event], ANY);
    return older;
  }

  async function comesBackWith(log: Log): Promise<void> {
    bench().server.stop();
    await bench().restart(log);
  }

  const outcome = (): Promise<string> =>
    store.append('fires-2', [numbered(9)], 'none').then(
      () => 'written',
      (error: unknown) => (error as { readonly code: string }).code,
    );

  it('receives no writes and is not healthy when the log is an older one', async () => {
    const older = olderLog(2);
    await comesBackWith(older);
    expect(await outcome()).to.be.oneOf(['UNAVAILABLE', 'OUTCOME_UNKNOWN']);
    expect(older.all).to.have.lengthOf(2);
    expect(await outcome()).to.equal('UNAVAILABLE');
    const error: unknown = await store.ping().catch((failure: unknown) => failure);
    expect(error).to.include({ code: 'UNAVAILABLE' });
    expect(String(error)).to.include('restart this process');
    expect(older.all).to.have.lengthOf(2);
  });

  it('receives no writes and is not followed when the older log has grown since', async () => {
    const older = olderLog(2);
    for (let n = 0; n < 20; n += 1) older.append(`run-${n}`, [...olderLog(1).all], ANY);
    const { length } = older.all;
    await comesBackWith(older);
    // Reads of this log must not be noted as events of the other one.
    await eventually(async () => (await store.head().catch(() => '')) !== '');
    expect(await outcome()).to.be.oneOf(['UNAVAILABLE', 'OUTCOME_UNKNOWN']);
    expect(await outcome()).to.equal('UNAVAILABLE');
    expect(older.all).to.have.lengthOf(length);
    expect(delivered).to.have.lengthOf(4);
  });

  it('receives no writes when none of the seen events exist in it', async () => {
    const other = new Log();
    // These events have other lengths, so that none begins at a position that was seen before.
    for (let n = 0; n < 20; n += 1) {
      const [first] = olderLog(1).all;
      if (first)
        other.append(`run-${n}`, [{ ...first, id: crypto.randomUUID(), type: 'Other' }], ANY);
    }
    const { length } = other.all;
    await comesBackWith(other);
    await eventually(async () => {
      const error: unknown = await store.ping().catch((failure: unknown) => failure);
      return String(error).includes('restart this process') || (await outcome(), false);
    });
    expect(other.all).to.have.lengthOf(length);
    expect(delivered).to.have.lengthOf(4);
  });

  it('is used again when the right log comes back', async () => {
    const { log } = bench().server;
    await comesBackWith(olderLog(2));
    expect(await outcome()).to.be.oneOf(['UNAVAILABLE', 'OUTCOME_UNKNOWN']);
    await comesBackWith(log);
    await eventually(async () => (await outcome()) === 'written');
    await eventually(() => delivered.length === 5);
    await store.ping();
  });

  it('is used again at once when the log is the same', async () => {
    const { log } = bench().server;
    await comesBackWith(log);
    expect(await outcome()).to.equal('written');
    await eventually(() => delivered.length === 5);
  });
});
