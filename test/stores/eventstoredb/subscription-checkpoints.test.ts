import { expect } from 'chai';
import { BEGINNING, type EventStore } from '../../../domain/event-store.ts';
import type { Log } from '../../support/eventstoredb-server/log.ts';
import { NO_PLACE } from '../../support/eventstoredb-server/messages.ts';
import {
  numbered,
  numbersOf,
  onWorkbench,
  patientAppends,
  take,
  upTo,
} from '../../support/eventstoredb-server/workbench.ts';
import { Signal, eventually } from '../../support/signals.ts';
import { reportingTo } from '../../support/reporting-to.ts';

describe('a checkpoint of an EventStoreDB subscription', () => {
  const bench = onWorkbench();
  /** Where lost subscriptions resume. */
  let takenUp: Signal<string>;
  let store: EventStore;
  let stop: AbortController;
  beforeEach(async () => {
    takenUp = new Signal('taking a subscription up again');
    stop = new AbortController();
    const debug = (_: string, fields?: { readonly after?: unknown }): void => {
      if (typeof fields?.after === 'string') takenUp.send(fields.after);
    };
    // Probes the log so rarely that only the server's checkpoints count.
    store = await bench().open({
      timings: { ...patientAppends, settleMs: 30_000, probeMs: 30_000, silenceMs: 60_000 },
      telemetry: reportingTo({ debug }),
    });
  });

  async function fill(from: number, to: number, stream: string): Promise<void> {
    const events = upTo(to - from).map((index) => numbered(from + index));
    await store.append(stream, events, 'any');
  }

  const subscribe = (): ReturnType<EventStore['subscribe']> =>
    store.subscribe({ after: BEGINNING, prefixes: ['task-'], signal: stop.signal });

  it('loses no event that arrives after the checkpoint at its position', async () => {
    await fill(0, 2, 'task-1');
    const { faults } = bench().server;
    // The answer uses the same connection, so earlier messages have arrived by then.
    faults.betweenPlaceAndEvent = async () => void (await store.head());
    const arrived = new Signal<number>('events that arrived');
    const taken = take(subscribe(), ({ events }) => {
      arrived.send(events.length);
      return events.length >= 3;
    });
    await arrived.wait((count) => count === 2);
    await fill(2, 4, 'task-1');
    expect(numbersOf((await taken).events).slice(0, 3)).to.deep.equal([0, 1, 2]);
    expect(faults.betweenPlaceAndEvent).to.equal(undefined);
  });

  for (const saysCaughtUp of [true, false]) {
    const server = saysCaughtUp ? 'one that says when it has caught up' : 'others';
    it(`is ${saysCaughtUp ? 'trusted' : 'not trusted'} beyond the initial end, from ${server}`, async () => {
      bench().server.faults.saysCaughtUp = saysCaughtUp;
      await fill(0, 2, 'task-1');
      const [, second] = await store.readStream('task-1');
      const arrived = new Signal<number>('events that arrived');
      const ended = take(subscribe(), ({ events }) => {
        arrived.send(events.length);
        return false;
      });
      await arrived.wait((count) => count === 2);
      await fill(2, 302, 'run-1');
      const open = () => bench().server.subscriptions;
      await eventually(() => open().some(({ checkpoints }) => checkpoints > 0));
      await store.head();
      for (const subscription of open()) subscription.drop();
      const after = await takenUp.wait();
      if (saysCaughtUp) expect(after > (second?.position ?? '')).to.equal(true);
      else expect(after).to.equal(second?.position);
      stop.abort();
      await ended;
    });
  }

  for (const [what, placeIn] of [
    ['a place behind the whole log', ({ behindAll }: Log) => behindAll],
    ['no place', () => NO_PLACE],
  ] as const) {
    it(`is not trusted after falling behind and catching up when it names ${what}`, async () => {
      const { server } = bench();
      server.faults.saysCaughtUp = true;
      await fill(0, 2, 'task-1');
      const [, second] = await store.readStream('task-1');
      const arrived = new Signal<number>('events that arrived');
      const taken = take(subscribe(), ({ events }) => {
        arrived.send(events.length);
        return events.length >= 3;
      });
      await arrived.wait((count) => count === 2);
      const [subscription] = server.subscriptions;
      await subscription?.fallBehind(placeIn(server.log));
      // The answer uses the same connection, so earlier messages have arrived by then.
      await store.head();
      subscription?.drop();
      expect(await takenUp.wait()).to.equal(second?.position);
      await fill(2, 3, 'task-1');
      expect(numbersOf((await taken).events)).to.deep.equal([0, 1, 2]);
    });
  }
});
