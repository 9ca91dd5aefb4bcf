import { expect } from 'chai';
import { describeSubscribing } from './event-store-subscribing.ts';
import {
  Follower,
  events,
  idsOf,
  newPrefix,
  newStream,
  type EventStoreSubject,
  type Subject,
} from './event-store-subject.ts';

/** Limits so small that the window holds only a few events of the suite. */
export const smallLimits = { kept: 2_000, most: 10_000, past: 10_000 };

/**
 * Runs the contract of `subscribe` again with a window of a few events. The follower of the log must fulfil it whatever
 * its window holds.
 *
 * @param open opens the log with {@link smallLimits}
 */
export function describeSmallWindow(name: string, open: () => Promise<EventStoreSubject>): void {
  describe(name, () => {
    let current: EventStoreSubject | undefined;
    const subject = (): EventStoreSubject => {
      if (current === undefined) throw new Error('There is a subject only during a test');
      return current;
    };
    beforeEach(async () => {
      current = await open();
    });
    afterEach(async () => {
      await current?.close();
      current = undefined;
    });

    describeSubscribing(subject);

    it('delays no follower because of a slow one, which loses nothing', async () => {
      const { store } = subject();
      const prefix = newPrefix();
      const start = await store.head();
      const stream = newStream(prefix);
      const [slow, quick] = [
        new Follower(store, start, [prefix]),
        new Follower(store, start, [prefix]),
      ];
      await Promise.all([slow.caughtUp(start), quick.caughtUp(start)]);
      const ids: string[] = [];
      for (let n = 0; n < 30; n += 1) {
        const some = events(20, 20 * n);
        ids.push(...idsOf(some));
        await store.append(stream, some, n === 0 ? 'none' : 20 * n - 1);
        await quick.count(20 * (n + 1));
      }
      expect(idsOf(quick.events)).to.deep.equal(ids);
      expect(slow.events).to.deep.equal([]);
      expect(idsOf(await slow.count(600))).to.deep.equal(ids);
      await Promise.all([slow.end(), quick.end()]);
    });

    it('lets a follower return to the window after it has read by itself', async () => {
      const { store } = subject();
      const prefix = newPrefix();
      const start = await store.head();
      const stream = newStream(prefix);
      await store.append(stream, events(300), 'none');
      const [one, other] = [
        new Follower(store, start, [prefix]),
        new Follower(store, start, [prefix]),
      ];
      for (const each of [one, other])
        await each.caughtUp((await each.count(300))[299]?.position ?? '');
      await store.append(stream, events(1, 300), 299);
      const [fromOne, fromOther] = [await one.count(301), await other.count(301)];
      expect(fromOne[300]).to.equal(fromOther[300]);
      await Promise.all([one.end(), other.end()]);
    });
  });
}

/** Tests that all followers of a process share one reading of the log. */
export function describeSharing(subject: Subject): void {
  describe('following together', () => {
    it('decodes each new event once for all followers', async () => {
      const { store } = subject();
      const stream = newStream();
      const start = await store.head();
      const [one, other] = [new Follower(store, start), new Follower(store, start, [stream])];
      await Promise.all([one.caughtUp(start), other.caughtUp(start)]);
      await store.append(stream, events(3), 'none');
      const mine = (follower: Follower): readonly unknown[] =>
        follower.events.filter((each) => each.stream === stream);
      while (mine(one).length < 3) await one.next();
      await other.count(3);
      for (const [n, event] of mine(one).entries()) expect(event).to.equal(mine(other)[n]);
      await Promise.all([one.end(), other.end()]);
    });

    it('reads an old log once for all followers that start together', async () => {
      const { reopen } = subject();
      const prefix = newPrefix();
      const start = await subject().store.head();
      for (let n = 0; n < 10; n += 1)
        await subject().store.append(newStream(prefix), events(100), 'none');
      // A log with nothing in memory.
      const store = await reopen();
      const followers = Array.from({ length: 4 }, () => new Follower(store, start, [prefix]));
      const all = await Promise.all(followers.map((each) => each.count(1_000)));
      const [first = [], ...others] = all;
      const shared = first.filter((event, n) => others.every((each) => each[n] === event));
      // Not all events are shared, because the first follower at the end of a page may start the
      // next page before the others arrive.
      expect(shared.length).to.be.at.least(500);
      for (const each of others) expect(idsOf(each)).to.deep.equal(idsOf(first));
      await Promise.all(followers.map((each) => each.end()));
    });

    it('lets each follower be at its own position', async () => {
      const { store } = subject();
      const prefix = newPrefix();
      const stream = newStream(prefix);
      const start = await store.head();
      const early = new Follower(store, start, [prefix]);
      await store.append(stream, events(5), 'none');
      const delivered = await early.count(5);
      for (const [n, { position }] of delivered.entries()) {
        const late = new Follower(store, position, [prefix]);
        await late.caughtUp(delivered[4]?.position ?? '');
        expect(idsOf(late.events)).to.deep.equal(idsOf(delivered.slice(n + 1)));
        await late.end();
      }
      await early.end();
    });
  });
}
