import { expect } from 'chai';
import {
  BEGINNING,
  EventStoreError,
  type EventStore,
  type NewEvent,
} from '../../../domain/event-store.ts';
import {
  caughtUp,
  hastyTimings,
  numbered,
  numbersOf,
  onWorkbench,
  take,
  upTo,
  type Received,
} from '../../support/eventstoredb-server/workbench.ts';
import { BROKEN_KEY, NEWER_VERSION } from '../../support/plain-codec.ts';
import { deferred, eventually } from '../../support/signals.ts';
import { reportingTo } from '../../support/reporting-to.ts';

describe('a subscription to EventStoreDB', () => {
  const bench = onWorkbench();
  let store: EventStore;
  let stop: AbortController;
  beforeEach(async () => {
    store = await bench().open({ timings: { silenceMs: 10_000 } });
    stop = new AbortController();
  });

  /** Appends events numbered from `from` to before `to`. */
  async function fill(from: number, to: number, stream = 'task-1'): Promise<void> {
    const events = upTo(to - from).map((index) => numbered(from + index));
    await store.append(stream, events, 'any');
  }

  const subscribe = (
    options: { after?: string; prefixes?: readonly string[] } = {},
  ): ReturnType<EventStore['subscribe']> =>
    store.subscribe({ after: BEGINNING, signal: stop.signal, ...options });

  const has =
    (count: number) =>
    ({ events }: Received): boolean =>
      events.length >= count;

  it('delivers existing events, reports that it has caught up, and continues with new ones', async () => {
    await fill(0, 3);
    const { messages, events } = await take(subscribe(), async (received) => {
      if (caughtUp(received) && received.events.length === 3) await fill(3, 5);
      return has(5)(received);
    });
    expect(numbersOf(events)).to.deep.equal(upTo(5));
    const firstCaughtUp = messages.find(({ kind }) => kind === 'caught-up');
    expect(firstCaughtUp).to.deep.include({ position: events[2]?.position });
  });

  it('begins strictly after a position, even within an old transaction', async () => {
    bench().server.log.writesTransactions = true;
    await fill(0, 5);
    const [, second] = await store.readAll(BEGINNING, 5);
    const { events } = await take(subscribe({ after: second?.position ?? '' }), caughtUp);
    expect(numbersOf(events)).to.deep.equal([2, 3, 4]);
  });

  it("leaves out the engine's own events", async () => {
    await fill(0, 2);
    bench().server.write('$stats', '$statsCollected', '{}');
    bench().server.write('task-1', '$>', '"0@task-2"');
    await store.truncate('task-1', 1);
    await fill(2, 4);
    const { events } = await take(subscribe(), caughtUp);
    expect(numbersOf(events)).to.deep.equal(upTo(4));
  });

  it('leaves out other streams, and moves past their events', async () => {
    await fill(0, 2, 'task-1');
    await fill(2, 100, 'run-1');
    const { messages, events } = await take(subscribe({ prefixes: ['task-', 'key-'] }), caughtUp);
    expect(numbersOf(events)).to.deep.equal([0, 1]);
    expect(messages.at(-1)).to.deep.include({ position: await store.head() });
  });

  it('moves on while all new events are skipped', async () => {
    let appended = false;
    const { messages } = await take(subscribe({ prefixes: ['task-'] }), async (received) => {
      if (!appended && caughtUp(received)) {
        appended = true;
        await fill(0, 3, 'run-1');
      }
      const last = received.messages.at(-1);
      return last?.kind === 'caught-up' && last.position === (await store.head()) && appended;
    });
    expect(messages.every(({ kind }) => kind === 'caught-up')).to.equal(true);
  });

  it('moves past many skipped events', async () => {
    for (let from = 0; from < 1_200; from += 300) await fill(from, from + 300, 'run-1');
    const { messages } = await take(subscribe({ prefixes: ['task-'] }), caughtUp);
    expect(messages).to.deep.equal([{ kind: 'caught-up', position: await store.head() }]);
  });

  it('delivers nothing for an empty list of prefixes', async () => {
    await fill(0, 2);
    const { events } = await take(subscribe({ prefixes: [] }), caughtUp);
    expect(events).to.be.empty;
  });

  it('reports that it has caught up in an empty log', async () => {
    const { messages } = await take(subscribe(), caughtUp);
    expect(messages).to.deep.equal([{ kind: 'caught-up', position: BEGINNING }]);
  });

  it('reports that it has caught up although events keep coming', async () => {
    await fill(0, 3);
    let next = 3;
    const { messages } = await take(subscribe(), async (received) => {
      if (received.messages.at(-1)?.kind === 'events') await fill(next, ++next);
      return caughtUp(received);
    });
    expect(messages.at(-1)?.kind).to.equal('caught-up');
  });

  it('loses no event after a position whose event has been scavenged', async () => {
    await fill(0, 3, 'run-1');
    const [, second] = await store.readAll(BEGINNING, 5);
    await store.truncate('run-1', 2);
    bench().server.log.scavenge();
    await fill(3, 5);
    const after = second?.position ?? '';
    for (const leavesOutTheNext of [true, false]) {
      bench().server.faults.leavesOutTheNext = leavesOutTheNext;
      const { events } = await take(subscribe({ after }), caughtUp);
      expect(numbersOf(events)).to.deep.equal([2, 3, 4]);
    }
  });

  it('loses no event after a position before all remaining ones', async () => {
    await fill(0, 3, 'run-1');
    const [first] = await store.readAll(BEGINNING, 5);
    await store.truncate('run-1', 2);
    bench().server.log.scavenge();
    const { events } = await take(subscribe({ after: first?.position ?? '' }), caughtUp);
    expect(numbersOf(events)).to.deep.equal([2]);
  });

  it('rejects a position of another engine', async () => {
    const failed: unknown = await take(subscribe({ after: 'not a position' }), () => true).catch(
      (error: unknown) => error,
    );
    expect(failed).to.be.instanceOf(EventStoreError).with.property('code', 'INVALID_EVENT');
  });

  it('reads at most one page ahead while the consumer works', async () => {
    const large = (number: number): NewEvent =>
      ({ ...numbered(number), data: { number, filling: 'x'.repeat(10_000) } }) as never;
    const total = 1_000;
    for (let from = 0; from < total; from += 50) {
      await store.append(
        'task-1',
        upTo(50).map((index) => large(from + index)),
        'any',
      );
    }
    const iterator = subscribe()[Symbol.asyncIterator]();
    const first = await iterator.next();
    const firstEvents = first.value?.kind === 'events' ? first.value.events : [];
    expect(firstEvents).to.have.length.within(1, total / 2);
    const pages = (): number =>
      bench().server.readsOfLog.filter(({ backwards }) => !backwards).length;
    expect(await quiet(pages)).to.equal(1);
    const rest = await take({ [Symbol.asyncIterator]: () => iterator }, (received) =>
      numbersOf(received.events).includes(total - 1),
    );
    expect(numbersOf([...firstEvents, ...rest.events])).to.deep.equal(upTo(total));
  });

  it('delivers everything that arrived in the meantime in one message', async () => {
    let before = -1;
    const { messages } = await take(subscribe(), async (received) => {
      if (before < 0 && caughtUp(received)) {
        before = received.messages.length;
        for (let from = 0; from < 100; from += 10) await fill(from, from + 10);
        await quiet(() => bench().server.subscriptions[0]?.sent);
      }
      return has(100)(received);
    });
    expect(messages.length - before).to.be.below(3);
  });

  it('delivers a broken event with its fault', async () => {
    bench().server.write('task-1', 'EventPublished', '{"number": ');
    bench().server.write('task-1', 'EventPublished', `{"${BROKEN_KEY}": 1}`);
    bench().server.write('task-1', 'EventPublished', '"{\\"json\\":1}"');
    await fill(0, 1);
    const { events } = await take(subscribe(), caughtUp);
    expect(events.map(({ fault }) => fault !== undefined)).to.deep.equal([
      true,
      true,
      false,
      false,
    ]);
    expect(events.map(({ data }) => data)).to.deep.include.members(['{"number": ', '{"json":1}']);
  });

  it('ends at an event of a newer release, after the events before it', async () => {
    await fill(0, 2);
    bench().server.write('task-1', 'New', '{}', `{"schemaVersion":"${NEWER_VERSION}"}`);
    await fill(2, 3);
    const seen: number[] = [];
    let failure: unknown;
    try {
      for await (const message of subscribe()) {
        if (message.kind === 'events') seen.push(...numbersOf(message.events));
      }
    } catch (error) {
      failure = error;
    }
    expect(failure).to.be.instanceOf(EventStoreError).with.property('code', 'NEWER_SCHEMA');
    expect(seen).to.deep.equal([0, 1]);
  });

  it('stays open for others when one has ended, until the log is closed', async () => {
    await take(subscribe(), async (received) => {
      if (caughtUp(received)) {
        await eventually(() => bench().server.subscriptions.length === 1);
        stop.abort();
      }
      return false;
    });
    await fill(0, 1);
    const { signal } = new AbortController();
    await take(store.subscribe({ after: BEGINNING, signal }), has(1));
    expect(bench().server.subscribed).to.equal(1);
    await store.close();
    await eventually(() => bench().server.subscriptions.length === 0);
  });

  it('ends when it is aborted while it waits', async () => {
    const quietNow = deferred();
    const ended = take(subscribe(), (received) => {
      if (caughtUp(received)) quietNow.resolve();
      return false;
    });
    await quietNow.promise;
    stop.abort();
    await ended;
  });

  it('does not start when already aborted', async () => {
    stop.abort();
    expect((await take(subscribe(), () => true)).messages).to.be.empty;
    expect(bench().server.subscribed).to.equal(0);
  });

  it('ends with an error when the log is closed', async () => {
    const ended = take(subscribe(), async (received) => {
      if (caughtUp(received)) void store.close();
      return false;
    });
    const error: unknown = await ended.catch((reason: unknown) => reason);
    expect(error).to.be.instanceOf(EventStoreError).with.property('code', 'UNAVAILABLE');
  });

  it('ends while the server cannot be reached', async () => {
    bench().server.stop();
    const lost = deferred();
    const telemetry = reportingTo({ warn: () => lost.resolve() });
    const other = await bench().open({ telemetry, timings: hastyTimings });
    const ended = take(other.subscribe({ after: BEGINNING, signal: stop.signal }), () => false);
    await lost.promise;
    stop.abort();
    await ended;
  });
});

/** A value once it has stayed the same for many turns of the event loop. */
async function quiet<T>(look: () => T): Promise<T> {
  let last = look();
  let same = 0;
  await eventually(() => {
    const now = look();
    same = now === last && now !== undefined && now !== 0 ? same + 1 : 0;
    last = now;
    return same >= 40;
  });
  return last;
}
