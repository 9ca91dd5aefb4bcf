import { expect } from 'chai';
import type { EventStore, RecordedEvent } from '../../domain/event-store.ts';
import {
  Follower,
  brokenEvent,
  event,
  events,
  idsOf,
  newerEvent,
  newPrefix,
  newStream,
  rejected,
  type EventStoreSubject,
  type Subject,
} from './event-store-subject.ts';

/** The contract of `subscribe`. */
export function describeSubscribing(subject: Subject): void {
  describe('subscribing', () => {
    const followers: Follower[] = [];
    const follow = (...parameters: ConstructorParameters<typeof Follower>): Follower => {
      const follower = new Follower(...parameters);
      followers.push(follower);
      return follower;
    };
    afterEach(() => {
      for (const follower of followers.splice(0)) follower.abort();
    });

    it('delivers existing events, then new ones', async () => {
      const { store } = subject();
      const prefix = newPrefix();
      const start = await store.head();
      const old = events(3);
      await store.append(newStream(prefix), old, 'none');
      const follower = follow(store, start, [prefix]);
      expect(idsOf(await follower.count(3))).to.deep.equal(idsOf(old));
      const fresh = events(2, 3);
      await store.append(newStream(prefix), fresh, 'none');
      expect(idsOf(await follower.count(5))).to.deep.equal(idsOf([...old, ...fresh]));
    });

    it('with the option once, ends by itself after all existing events', async () => {
      const { store } = subject();
      const prefix = newPrefix();
      const start = await store.head();
      const old = events(3);
      await store.append(newStream(prefix), old, 'none');
      await store.append(newStream(), events(1), 'none');
      const { signal } = new AbortController();
      const options = { after: start, prefixes: [prefix], once: true, signal };
      const [delivered, kinds]: [RecordedEvent[], string[]] = [[], []];
      for await (const message of store.subscribe(options)) {
        kinds.push(message.kind);
        if (message.kind === 'events') delivered.push(...message.events);
      }
      expect(idsOf(delivered)).to.deep.equal(idsOf(old));
      expect(kinds.at(-1)).to.equal('caught-up');
    });

    it('reports its progress over unwanted events, up to the end', async () => {
      const { store } = subject();
      const start = await store.head();
      await store.append(newStream(), events(3), 'none');
      const head = await store.head();
      const passed: string[] = [];
      const onPassed = (position: string): void => void passed.push(position);
      const { signal } = new AbortController();
      const options = { after: start, prefixes: [newPrefix()], once: true, onPassed, signal };
      for await (const message of store.subscribe(options)) {
        expect(message.kind).to.equal('caught-up');
        if (message.kind === 'caught-up') expect(passed.at(-1)).to.equal(message.position);
      }
      expect(passed.at(-1) ?? '').to.satisfy((position: string) => position >= head);
      expect(passed).to.deep.equal([...passed].sort());
    });

    it('delivers the same events as a read, old and live', async () => {
      const { store } = subject();
      const stream = newStream();
      const start = await store.head();
      await store.append(stream, [event(0, { text: 'old 漢字' })], 'none');
      const follower = follow(store, start, [stream]);
      await follower.count(1);
      await follower.caughtUp(follower.events[0]?.position ?? '');
      await store.append(stream, [event(1, { text: 'live 🎉' }), event(2)], 0);
      const delivered = await follower.count(3);
      expect(delivered).to.deep.equal(await store.readStream(stream));
    });

    it('never reports a position that the log does not reach', async () => {
      const { store } = subject();
      const prefix = newPrefix();
      const stream = newStream(prefix);
      const start = await store.head();
      const appended = await store.append(stream, events(5), 'none');
      // On some engines the last event of the log is then one of the engine's own.
      await store.truncate(stream, 3);
      for (const prefixes of [[prefix], [newPrefix()], undefined]) {
        const after = prefixes?.[0] === prefix ? start : appended.position;
        const reported = await follow(store, after, prefixes).caughtUp(appended.position);
        expect(
          await store.reaches(reported),
          `${reported}, reported for ${prefixes?.join() ?? 'all'}`,
        ).to.equal(true);
      }
    });

    it('begins strictly after the position', async () => {
      const { store } = subject();
      const stream = newStream();
      const appended = events(5);
      await store.append(stream, appended, 'none');
      const read = await store.readStream(stream);
      const follower = follow(store, read[2]?.position ?? '', [stream]);
      expect(idsOf(await follower.count(2))).to.deep.equal(idsOf(appended.slice(3)));
    });

    it('delivers every stream without prefixes', async () => {
      const { store } = subject();
      const start = await store.head();
      const streams = [newStream(), newStream(), newStream()];
      const follower = follow(store, start);
      for (const stream of streams) await store.append(stream, [event(0)], 'none');
      const mine = (): string[] =>
        follower.events.map(({ stream }) => stream).filter((name) => streams.includes(name));
      while (mine().length < 3) await follower.next();
      expect(mine()).to.deep.equal(streams);
    });

    it('leaves out all streams without one of its prefixes', async () => {
      const { store } = subject();
      const start = await store.head();
      const [one, two, other] = [newPrefix(), newPrefix(), newPrefix()];
      const follower = follow(store, start, [one, two]);
      const wanted: string[] = [];
      for (const prefix of [other, one, other, two, one.toUpperCase(), other, one]) {
        const fresh = event(0);
        await store.append(newStream(prefix), [fresh], 'none');
        if (prefix === one || prefix === two) wanted.push(fresh.id);
      }
      expect(idsOf(await follower.count(3))).to.deep.equal(wanted);
    });

    it('compares prefixes exactly', async () => {
      const { store } = subject();
      const start = await store.head();
      const plain = newPrefix();
      const special = `${newPrefix()}a.b[c|(\\`;
      const follower = follow(store, start, [plain, special]);
      // Names that look alike to people or match as expressions, and names with the exact prefix.
      const alike = [`${plain.slice(0, 4)}\u00ad${plain.slice(4)}`, special.replace('.', 'x')];
      const wanted = [`${plain}\u0301-`, special, `${plain}\u{1f600}`];
      const ids: string[] = [];
      for (const prefix of [...alike, ...wanted]) {
        const fresh = event(0);
        await store.append(newStream(prefix), [fresh], 'none');
        if (wanted.includes(prefix)) ids.push(fresh.id);
      }
      expect(idsOf(await follower.count(3))).to.deep.equal(ids);
    });

    describeCatchingUp(subject, follow);
    describeEnding(subject, follow);
    describeLoad(subject, follow);
  });
}

type Follow = (...parameters: ConstructorParameters<typeof Follower>) => Follower;

function describeCatchingUp(subject: Subject, follow: Follow): void {
  it('reports that it has caught up, after all existing events', async () => {
    const { store } = subject();
    const stream = newStream();
    const start = await store.head();
    const { position } = await store.append(stream, events(3), 'none');
    const follower = follow(store, start, [stream]);
    await follower.caughtUp(position);
    expect(follower.events).to.have.lengthOf(3);
  });

  it('reports that it has caught up when there is nothing after the position', async () => {
    const { store } = subject();
    const stream = newStream();
    const { position } = await store.append(stream, events(1), 'none');
    const follower = follow(store, position, [stream]);
    expect((await follower.caughtUp(position)) >= position).to.equal(true);
    expect(follower.events).to.deep.equal([]);
  });

  it('advances over skipped events, old and live', async () => {
    const { store } = subject();
    const start = await store.head();
    const old = await store.append(newStream(), events(3), 'none');
    const follower = follow(store, start, [newPrefix()]);
    await follower.caughtUp(old.position);
    const live = await store.append(newStream(), events(3), 'none');
    await follower.caughtUp(live.position);
    expect(follower.events).to.deep.equal([]);
  });

  it('can continue without loss from where it had caught up', async () => {
    const { store } = subject();
    const prefix = newPrefix();
    const start = await store.head();
    const { position } = await store.append(newStream(prefix), events(2), 'none');
    const first = follow(store, start, [prefix]);
    const reached = await first.caughtUp(position);
    await first.end();
    const later = events(2, 2);
    await store.append(newStream(prefix), later, 'none');
    const second = follow(store, reached, [prefix]);
    expect(idsOf(await second.count(2))).to.deep.equal(idsOf(later));
  });
}

function describeEnding(subject: Subject, follow: Follow): void {
  it('ends when its signal is aborted, while it waits', async () => {
    const { store } = subject();
    const follower = follow(store, await store.head(), [newPrefix()]);
    await follower.next();
    let message = follower.next();
    follower.abort();
    while ((await message) !== undefined) message = follower.next();
  });

  it('ends at once when its signal is already aborted', async () => {
    const { store } = subject();
    const follower = follow(store, await store.head());
    follower.abort();
    expect(await follower.next()).to.equal(undefined);
  });

  it('can be abandoned midway without affecting the store', async () => {
    const { store } = subject();
    const stream = newStream();
    const start = await store.head();
    await store.append(stream, events(3), 'none');
    const { signal } = new AbortController();
    for await (const message of store.subscribe({ after: start, prefixes: [stream], signal })) {
      if (message.kind === 'events') break;
    }
    expect((await store.append(stream, [event(3)], 2)).revision).to.equal(3);
  });

  it('delivers events that do not fit their schema with a fault', async () => {
    const { store } = subject();
    const stream = newStream();
    const start = await store.head();
    await store.append(stream, [event(0), brokenEvent(), event(2)], 'none');
    const follower = follow(store, start, [stream]);
    const delivered = await follower.count(3);
    expect(delivered.map(({ fault }) => fault === undefined)).to.deep.equal([true, false, true]);
  });

  it('throws NEWER_SCHEMA at an event of a newer release, after all earlier ones', async () => {
    const { store } = subject();
    const stream = newStream();
    const start = await store.head();
    await store.append(stream, [event(0), event(1), newerEvent(), event(3)], 'none');
    const follower = follow(store, start, [stream]);
    await rejected('NEWER_SCHEMA', follower.count(4));
    expect(follower.events).to.have.lengthOf(2);
  });

  it('ignores an event of a newer release in a stream that it leaves out', async () => {
    const { store } = subject();
    const stream = newStream();
    const start = await store.head();
    await store.append(newStream(), [newerEvent()], 'none');
    const { position } = await store.append(stream, [event(0)], 'none');
    const follower = follow(store, start, [stream]);
    await follower.caughtUp(position);
    expect(follower.events).to.have.lengthOf(1);
  });
}

function describeLoad(subject: Subject, follow: Follow): void {
  it('delivers everything once and in order during concurrent appends', async () => {
    const { store } = subject();
    const prefix = newPrefix();
    const start = await store.head();
    const early = follow(store, start, [prefix]);
    const appending = appendFromMany(store, prefix, 20, 25);
    await early.count(100);
    const late = follow(store, start, [prefix]);
    await appending;
    const fromEarly = await early.count(500);
    expectOnceInOrder(fromEarly, 500);
    expect(idsOf(await late.count(500))).to.deep.equal(idsOf(fromEarly));
  });

  it('waits for a slow consumer of thousands of events, and loses none', async () => {
    const { store } = subject();
    const prefix = newPrefix();
    const follower = follow(store, await store.head(), [prefix]);
    const stream = newStream(prefix);
    await store.append(stream, [event(0)], 'none');
    await follower.count(1);
    // The consumer handles its first event while all others are appended.
    for (let i = 0; i < 60; i += 1) await store.append(stream, events(100, 1 + 100 * i), 100 * i);
    const delivered = await follower.count(6001);
    expect(delivered.map(({ revision }) => revision)).to.deep.equal(
      Array.from({ length: 6001 }, (_, i) => i),
    );
    const { position } = await store.append(stream, [event(6001)], 6000);
    const reported = await follower.caughtUp(position);
    expect(follower.events).to.have.lengthOf(6002);
    // A server may let the subscription fall behind and catch up again, and then report its
    // progress.
    expect(await store.reaches(reported), reported).to.equal(true);
  });

  it('sees appends of another store over the same log after a reopening', async () => {
    const current: EventStoreSubject = subject();
    const prefix = newPrefix();
    const start = await current.store.head();
    await current.store.append(newStream(prefix), events(2), 'none');
    const reopened = await current.reopen();
    const follower = follow(reopened, start, [prefix]);
    await reopened.append(newStream(prefix), events(2, 2), 'none');
    expectOnceInOrder(await follower.count(4), 4);
  });
}

async function appendFromMany(
  store: EventStore,
  prefix: string,
  writers: number,
  each: number,
): Promise<void> {
  await Promise.all(
    Array.from({ length: writers }, async () => {
      const stream = newStream(prefix);
      for (let i = 0; i < each; i += 1) {
        await store.append(stream, [event(i)], i === 0 ? 'none' : i - 1);
      }
    }),
  );
}

/** Expects every event once, by position, and each stream's by revision without gaps. */
function expectOnceInOrder(delivered: readonly RecordedEvent[], count: number): void {
  expect(delivered).to.have.lengthOf(count);
  const positions = delivered.map(({ position }) => position);
  expect(positions).to.deep.equal([...new Set(positions)].sort());
  const revisions = new Map<string, number>();
  for (const { stream, revision } of delivered) {
    expect(revision, stream).to.equal((revisions.get(stream) ?? -1) + 1);
    revisions.set(stream, revision);
  }
}
