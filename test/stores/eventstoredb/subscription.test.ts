import { expect } from 'chai';
import {
  BEGINNING,
  EventStoreError,
  type EventStore,
  type NewEvent,
} from '../../../domain/event-store.ts';
import { silent, type Telemetry } from '../../../observability/telemetry.ts';
import {
  caughtUp,
  numbered,
  numbersOf,
  onWorkbench,
  patientAppends,
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
    store = await bench().open({ timings: patientAppends });
    stop = new AbortController();
  });

  /** Appends events with the numbers from one up to but without another. */
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

  /** Expects nothing more to arrive after it has caught up again. */
  const settledWith =
    (count: number) =>
    (received: Received): boolean =>
      received.events.length >= count && caughtUp(received);

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

  it('filters by prefix on the server, and moves on over skipped events', async () => {
    await fill(0, 2, 'task-1');
    await fill(2, 100, 'run-1');
    const { messages, events } = await take(subscribe({ prefixes: ['task-', 'key-'] }), caughtUp);
    expect(numbersOf(events)).to.deep.equal([0, 1]);
    expect(messages.at(-1)).to.deep.include({ position: await store.head() });
    expect(bench().server.subscriptions[0]?.sent ?? 2).to.equal(2);
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

  it('moves on over many skipped events although the server sends no checkpoints', async () => {
    bench().server.faults.sendsCheckpoints = false;
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

  it('trusts a server that reports it', async () => {
    bench().server.faults.saysCaughtUp = true;
    await fill(0, 3);
    const { events } = await take(subscribe(), caughtUp);
    expect(events).to.have.lengthOf(3);
  });

  for (const how of ['error', 'clean-end', 'too-slow'] as const) {
    it(`resumes without loss or repetition when cut repeatedly: ${how}`, async () => {
      await fill(0, 50);
      bench().server.faults.cutSubscriptions = { after: 7, how };
      const { events } = await take(subscribe(), settledWith(50));
      expect(numbersOf(events)).to.deep.equal(upTo(50));
      expect(bench().server.subscribed).to.be.at.least(8);
    });
  }

  it('treats a clean end as a loss at once, not only after a silence', async () => {
    const timings = { ...patientAppends, silenceMs: 60_000, probeMs: 30_000 };
    const patient = await bench().open({ timings });
    await fill(0, 20);
    bench().server.faults.cutSubscriptions = { after: 7, how: 'clean-end' };
    const options = { after: BEGINNING, signal: stop.signal };
    const { events } = await take(patient.subscribe(options), has(20));
    expect(numbersOf(events)).to.deep.equal(upTo(20));
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

  it('neither loses nor repeats events when cut at a position without an event', async () => {
    const { server } = bench();
    const patient = await bench().open({ timings: { ...patientAppends, settleMs: 30_000 } });
    await fill(0, 300, 'run-1');
    const after = (await store.readAll(BEGINNING, 1))[0]?.position ?? '';
    const subscription = patient.subscribe({ after, prefixes: ['task-'], signal: stop.signal });
    const taken = take(subscription, has(3));
    await eventually(() => server.subscriptions.some(({ checkpoints }) => checkpoints > 1));
    for (const open of server.subscriptions) open.drop();
    await eventually(() => server.subscribed > 1);
    await fill(300, 303);
    expect(numbersOf((await taken).events)).to.deep.equal([300, 301, 302]);
  });

  it('rejects a position of another engine', async () => {
    const failed: unknown = await take(subscribe({ after: 'not a position' }), () => true).catch(
      (error: unknown) => error,
    );
    expect(failed).to.be.instanceOf(EventStoreError).with.property('code', 'INVALID_EVENT');
  });

  it('resumes after the last handled event, not after the last received one', async () => {
    await fill(0, 20);
    let held = false;
    const { events } = await take(subscribe(), async (received) => {
      if (!held && received.events.length > 0) {
        held = true;
        for (const open of bench().server.subscriptions) open.drop();
        await eventually(() => bench().server.subscriptions.length === 0);
      }
      return settledWith(20)(received);
    });
    expect(numbersOf(events)).to.deep.equal(upTo(20));
  });

  it('resumes after the server was down', async () => {
    await fill(0, 2);
    let restarted = false;
    const { events } = await take(subscribe(), async (received) => {
      if (!restarted && caughtUp(received)) {
        restarted = true;
        bench().server.stop();
        await bench().restart();
        await eventually(() => fill(2, 4));
      }
      return has(4)(received);
    });
    expect(numbersOf(events)).to.deep.equal(upTo(4));
  });

  it('resumes when the server rejects it at first', async () => {
    await fill(0, 2);
    bench().server.faults.onNextSubscriptions('unavailable', 'unavailable');
    const { events } = await take(subscribe(), has(2));
    expect(numbersOf(events)).to.deep.equal([0, 1]);
  });

  for (const fault of ['silent', 'confirms-only'] as const) {
    it(`resumes when the server sends nothing: ${fault}`, async () => {
      await fill(0, 2);
      bench().server.faults.onNextSubscriptions(fault);
      const { events } = await take(subscribe(), has(2));
      expect(numbersOf(events)).to.deep.equal([0, 1]);
      expect(bench().server.subscribed).to.equal(2);
    });
  }

  it('resumes when it falls silent after having worked', async () => {
    await fill(0, 2);
    let silenced = false;
    const { events } = await take(subscribe(), async (received) => {
      if (!silenced && caughtUp(received)) {
        silenced = true;
        for (const open of bench().server.subscriptions) open.fallSilent();
        await fill(2, 4);
      }
      return settledWith(4)(received);
    });
    expect(numbersOf(events)).to.deep.equal(upTo(4));
  });

  it('stays when it is quiet because nothing happens', async () => {
    const counted: string[] = [];
    const telemetry: Telemetry = { ...silent, count: (name) => counted.push(name) };
    const watched = await bench().open({ telemetry });
    await fill(0, 1);
    const { reads } = bench().server;
    const iterator = watched.subscribe({ after: BEGINNING, signal: stop.signal });
    const taken = take(iterator, has(2));
    // Ten checks at 20 ms take several times the 60 ms after which a missing event means silence.
    await eventually(() => bench().server.reads >= reads + 10);
    await fill(1, 2);
    expect(numbersOf((await taken).events)).to.deep.equal([0, 1]);
    expect(counted).to.be.empty;
    expect(bench().server.subscribed).to.equal(1);
  });

  it('holds the server back while the consumer works', async () => {
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
    expect(await quiet(() => bench().server.subscriptions[0]?.sent ?? 0)).to.be.below(total / 2);
    const rest = await take({ [Symbol.asyncIterator]: () => iterator }, (received) =>
      numbersOf(received.events).includes(total - 1),
    );
    const firstEvents = first.value?.kind === 'events' ? first.value.events : [];
    expect(numbersOf([...firstEvents, ...rest.events])).to.deep.equal(upTo(total));
  });

  it('delivers everything buffered meanwhile in one message', async () => {
    await fill(0, 100);
    const { messages } = await take(subscribe(), async (received) => {
      if (received.messages.length === 1) await quiet(() => bench().server.subscriptions[0]?.sent);
      return has(100)(received);
    });
    expect(messages.length).to.be.below(50);
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
    await eventually(() => bench().server.subscriptions.length === 0);
  });

  it('ends when it is aborted, and leaves the server', async () => {
    await take(subscribe(), async (received) => {
      if (caughtUp(received)) stop.abort();
      return false;
    });
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

  it('ends when the log is closed', async () => {
    const ended = take(subscribe(), async (received) => {
      if (caughtUp(received)) void store.close();
      return false;
    });
    await ended;
  });

  it('ends while the server cannot be reached', async () => {
    bench().server.stop();
    const lost = deferred();
    const telemetry = reportingTo({ warn: () => lost.resolve() });
    const other = await bench().open({ telemetry });
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
