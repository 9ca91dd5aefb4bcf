import { setMaxListeners } from 'node:events';
import { expect } from 'chai';
import type { EventStore, SubscriptionMessage } from '../../../domain/event-store.ts';
import { SharedFeed, type FeedPage } from '../../../projections/projector/shared-feed.ts';
import { deferred } from '../../support/signals.ts';
import { settle, VirtualClock } from '../../support/virtual-clock.ts';
import { LogOfTest, request } from '../recorded.ts';

/** A log that delivers one message at a time when the test says so, and counts those taken. */
class ScriptedLog {
  taken = 0;
  readonly #messages: SubscriptionMessage[] = [];
  #more = deferred();

  send(...messages: readonly SubscriptionMessage[]): void {
    this.#messages.push(...messages);
    this.#more.resolve();
  }

  readonly store = {
    subscribe: (options: { readonly signal: AbortSignal }) => this.#iterate(options.signal),
  } as unknown as EventStore;

  async *#iterate(signal: AbortSignal): AsyncGenerator<SubscriptionMessage> {
    signal.addEventListener('abort', () => this.#more.resolve());
    while (!signal.aborted) {
      const next = this.#messages.shift();
      if (next) {
        this.taken += 1;
        yield next;
      } else {
        this.#more = deferred();
        await this.#more.promise;
      }
    }
  }
}

describe('the shared feed of the views', () => {
  const stop = new AbortController();
  // Each test has a feed of its own.
  setMaxListeners(0, stop.signal);
  let log: LogOfTest;
  let source: ScriptedLog;
  let clock: VirtualClock;
  let feed: SharedFeed;
  let ended: Promise<void>;

  const reader = { name: 'one' };
  const other = { name: 'other' };

  function events(count: number): SubscriptionMessage {
    const added = Array.from({ length: count }, () => log.add('run-1', 'RunRequested', request()));
    return { kind: 'events', events: added };
  }

  function next(who: object, after: string, patience?: number): Promise<FeedPage> {
    return feed.next(who, after, { limit: 100, signal: stop.signal, patience });
  }

  const at = (position: number): string => String(position).padStart(16, '0');

  async function pageOf(who: object, after: string): Promise<string> {
    const page = await next(who, after);
    return page.kind === 'events' ? `${page.events.length} up to ${Number(page.upTo)}` : page.kind;
  }

  beforeEach(() => {
    log = new LogOfTest();
    source = new ScriptedLog();
    clock = new VirtualClock();
    feed = new SharedFeed(source.store, clock, ['run-'], 4_000);
    ended = feed.fill(stop.signal);
  });

  after(async () => {
    stop.abort();
    await ended;
  });

  it('rejects readers before it has begun, and readers outside its window', async () => {
    expect(await pageOf(reader, at(5))).to.equal('behind');
    log.add('run-0', 'RunRequested', request());
    feed.begin(at(1));
    expect(await pageOf(reader, '')).to.equal('behind');
    expect(feed.holds(at(1))).to.equal(true);
  });

  it('gives each reader everything after its position, once', async () => {
    feed.begin('');
    source.send(events(2), events(3));
    await settle();
    expect(await pageOf(reader, '')).to.equal('5 up to 5');
    expect(await pageOf(other, at(3))).to.equal('2 up to 5');
    const waiting = pageOf(reader, at(5));
    source.send(events(1));
    expect(await waiting).to.equal('1 up to 6');
  });

  it('lets readers pass events of others', async () => {
    feed.begin('');
    source.send(events(1), { kind: 'caught-up', position: at(9) });
    await settle();
    expect(await pageOf(reader, '')).to.equal('1 up to 9');
    expect(feed.isLevelAt(at(8))).to.equal(false);
    expect(feed.isLevelAt(at(9))).to.equal(true);
    source.send({ kind: 'caught-up', position: at(12) });
    expect(await pageOf(reader, at(9))).to.equal('0 up to 12');
  });

  it("returns when a reader's patience ends", async () => {
    feed.begin('');
    const waiting = next(reader, '', 25);
    await clock.advance(25);
    expect(await waiting).to.deep.equal({ kind: 'quiet' });
    expect(clock.pending).to.equal(0);
  });

  it('is held back by its slowest reader, until that one leaves', async () => {
    feed.begin('');
    source.send(...Array.from({ length: 60 }, () => events(100)));
    expect(await pageOf(other, '')).to.equal('100 up to 100');
    let place = at(100);
    for (let page = await next(reader, place, 0); page.kind === 'events';) {
      place = page.upTo;
      await settle(1);
      page = await next(reader, place, 0);
    }
    expect(source.taken).to.equal(41);
    feed.leave(other);
    await settle();
    expect(source.taken).to.be.greaterThan(41);
  });

  it('lets a reader wait for many events, or for a time', async () => {
    feed.begin('');
    source.send(events(10));
    await settle();
    const wait = { events: 25, patience: 20, quiet: 20, signal: stop.signal };
    let isOver = false;
    const enough = feed.gather(reader, '', wait).then(() => (isOver = true));
    source.send(events(10));
    await settle();
    expect(isOver).to.equal(false);
    source.send(events(5));
    await enough;
    const late = feed.gather(reader, at(10), wait);
    await clock.advance(20);
    await late;
    expect(clock.pending).to.equal(0);
  });

  it('lets a reader wait while events come', async () => {
    feed.begin('');
    source.send(events(10));
    await settle();
    let isOver = false;
    const wait = { events: 100, patience: 50, quiet: 10, signal: stop.signal };
    const gathered = feed.gather(reader, '', wait).then(() => (isOver = true));
    for (let time = 0; time < 3; time += 1) {
      await clock.advance(9);
      source.send(events(1));
      await settle();
    }
    await clock.advance(9);
    expect(isOver).to.equal(false);
    await clock.advance(1);
    await gathered;
    expect(clock.pending).to.equal(0);
  });

  it('is not held back by events that a gathering reader has passed', async () => {
    feed.begin('');
    source.send(...Array.from({ length: 80 }, () => events(100)));
    await settle();
    expect(await pageOf(reader, '')).to.equal('100 up to 100');
    await settle();
    expect(source.taken).to.equal(41);
    await feed.gather(reader, at(3_000), {
      ...{ events: 4_000, patience: 1, quiet: 1, signal: stop.signal },
    });
    expect(source.taken).to.be.greaterThan(69);
  });

  it('forgets what all have passed and no one may come back for', async () => {
    feed.begin('');
    source.send(...Array.from({ length: 70 }, () => events(100)));
    let place = '';
    while (Number(place) < 7_000) {
      const page = await next(reader, place);
      if (page.kind === 'events') place = page.upTo;
    }
    await next(reader, place, 0).catch(() => undefined);
    expect(feed.holds(at(100))).to.equal(false);
    expect(feed.holds(at(6_500))).to.equal(true);
  });

  it('gives the slowest reader the next events even if its joining drops earlier chunks', async () => {
    feed.begin(at(0));
    source.send(events(10));
    await settle();
    expect(await pageOf(reader, at(0))).to.equal('10 up to 10');
    expect(await pageOf(other, at(0))).to.equal('10 up to 10');
    void next(other, at(10));
    source.send(events(2500));
    await settle();
    // The first ten are not needed once this reader has passed them, and the log waits only for it.
    expect(await pageOf(reader, at(10))).to.equal('2500 up to 2510');
  });
});
