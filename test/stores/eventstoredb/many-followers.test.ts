import { expect } from 'chai';
import { setMaxListeners } from 'node:events';
import { BEGINNING } from '../../../domain/event-store.ts';
import {
  caughtUp,
  followedByMany,
  numbered,
  numbersOf,
  onWorkbench,
  take,
  upTo,
} from '../../support/eventstoredb-server/workbench.ts';
import { eventually } from '../../support/signals.ts';

/** More than the calls that a server accepts on one connection. */
const FOLLOWERS = 150;

describe('many followers of EventStoreDB', () => {
  const bench = onWorkbench();

  it('share one subscription, and receive all events', async () => {
    const timings = { probeMs: 2_000, silenceMs: 10_000 };
    const store = await bench().open({ timings });
    const stop = new AbortController();
    setMaxListeners(0, stop.signal);
    const heard: number[][] = [];
    const levels = upTo(FOLLOWERS).map((n) => {
      const numbers: number[] = [];
      heard.push(numbers);
      const options = { after: BEGINNING, prefixes: [`run-${n % 2}`], signal: stop.signal };
      const follow = async (level: () => void): Promise<void> => {
        await take(store.subscribe(options), (received) => {
          if (caughtUp(received)) level();
          numbers.splice(0, numbers.length, ...numbersOf(received.events));
          return false;
        });
      };
      let ended: Promise<void> = Promise.resolve();
      const isLevel = new Promise<void>((resolve) => {
        ended = follow(resolve);
      });
      return isLevel.then(() => ({ ended }));
    });
    const following = await Promise.all(levels);
    expect(bench().server.subscriptions).to.have.lengthOf(1);

    await store.ping();
    await store.append('run-0', [numbered(1)], 'none');
    await store.append('run-1', [numbered(2)], 'none');
    expect(numbersOf(await store.readStream('run-1'))).to.deep.equal([2]);
    await eventually(() => heard.every(({ length }) => length === 1), {
      what: 'all followers to receive an event',
    });
    expect(heard).to.deep.equal(upTo(FOLLOWERS).map((n) => [1 + (n % 2)]));

    stop.abort();
    await Promise.all(following.map(({ ended }) => ended));
    const last = await take(
      store.subscribe({ after: BEGINNING, signal: new AbortController().signal }),
      caughtUp,
    );
    expect(numbersOf(last.events)).to.deep.equal([1, 2]);
    expect(bench().server.subscribed).to.equal(1);
  });

  it('resume when the server returns', async () => {
    const timings = { probeMs: 1_000, silenceMs: 10_000 };
    const store = await bench().open({ timings });
    const following = followedByMany(store, 60);
    await store.append('run-0', [numbered(1)], 'none');
    await eventually(() => following.heard() === 60, { what: 'all followers to receive an event' });
    bench().server.stop();
    await bench().restart();
    await store.append('run-0', [numbered(2)], 0);
    await eventually(() => following.heard() === 120, {
      what: 'all followers to receive an event again',
    });
    await following.stop();
  });
});
