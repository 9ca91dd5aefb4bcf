import { expect } from 'chai';
import { BEGINNING, type EventStore } from '../../../domain/event-store.ts';
import { silent, type Telemetry } from '../../../observability/telemetry.ts';
import {
  caughtUp,
  numbered,
  numbersOf,
  onWorkbench,
  take,
  upTo,
  type Received,
} from '../../support/eventstoredb-server/workbench.ts';
import { eventually } from '../../support/signals.ts';

describe('a lost subscription to EventStoreDB', () => {
  const bench = onWorkbench();
  let store: EventStore;
  let stop: AbortController;
  beforeEach(async () => {
    store = await bench().open();
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

  /** Expects nothing more to arrive after it has caught up again. */
  const settledWith =
    (count: number) =>
    (received: Received): boolean =>
      received.events.length >= count && caughtUp(received);

  for (const how of ['error', 'clean-end', 'too-slow'] as const) {
    it(`resumes without loss or repetition when cut repeatedly: ${how}`, async () => {
      let filled = false;
      const { events } = await take(subscribe(), async (received) => {
        if (!filled && caughtUp(received)) {
          filled = true;
          bench().server.faults.cutSubscriptions = { after: 7, how };
          await fill(0, 50);
        }
        return settledWith(50)(received);
      });
      expect(numbersOf(events)).to.deep.equal(upTo(50));
      expect(bench().server.subscribed).to.be.at.least(8);
    });
  }

  it('treats a clean end as a loss at once, not only after a silence', async () => {
    const timings = { silenceMs: 60_000, probeMs: 30_000 };
    const patient = await bench().open({ timings });
    let filled = false;
    const options = { after: BEGINNING, signal: stop.signal };
    const { events } = await take(patient.subscribe(options), async (received) => {
      if (!filled && caughtUp(received)) {
        filled = true;
        bench().server.faults.cutSubscriptions = { after: 7, how: 'clean-end' };
        await fill(0, 20);
      }
      return has(20)(received);
    });
    expect(numbersOf(events)).to.deep.equal(upTo(20));
  });

  it("neither loses nor repeats events when cut after the engine's own", async () => {
    const { server } = bench();
    await fill(0, 1);
    let passed = false;
    const { events } = await take(subscribe(), async (received) => {
      if (!passed && caughtUp(received)) {
        passed = true;
        for (let n = 0; n < 40; n += 1) server.write('$stats', '$statsCollected', '{}');
        const reads = server.readsOfLog.length;
        await eventually(() => server.readsOfLog.length > reads + 4);
        for (const open of server.subscriptions) open.drop();
        await eventually(() => server.subscribed > 1);
        await fill(1, 4);
      }
      return settledWith(4)(received);
    });
    expect(numbersOf(events)).to.deep.equal(upTo(4));
  });

  it('loses nothing that is appended while it is lost', async () => {
    let lost = false;
    const { events } = await take(subscribe(), async (received) => {
      if (!lost && caughtUp(received)) {
        lost = true;
        await fill(0, 10);
        for (const open of bench().server.subscriptions) open.drop();
        await fill(10, 20);
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
    bench().server.faults.onNextSubscriptions('unavailable', 'unavailable');
    let filled = false;
    const { events } = await take(subscribe(), async (received) => {
      if (!filled && caughtUp(received)) {
        filled = true;
        await fill(0, 2);
      }
      return has(2)(received);
    });
    expect(numbersOf(events)).to.deep.equal([0, 1]);
    expect(bench().server.subscribed).to.be.at.least(3);
  });

  for (const fault of ['silent', 'confirms-only'] as const) {
    it(`resumes when the server sends nothing: ${fault}`, async () => {
      await fill(0, 2);
      bench().server.faults.onNextSubscriptions(fault);
      let filled = false;
      const { events } = await take(subscribe(), async (received) => {
        if (!filled && caughtUp(received)) {
          filled = true;
          await fill(2, 4);
        }
        return has(4)(received);
      });
      expect(numbersOf(events)).to.deep.equal(upTo(4));
      expect(bench().server.subscribed).to.be.at.least(2);
    });
  }

  it('resumes if it falls silent after having worked', async () => {
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

  it('is kept if it is quiet because nothing happens', async () => {
    const counted: string[] = [];
    const telemetry: Telemetry = {
      ...silent,
      count: (name) => name === 'eventstore_calls_total' || counted.push(name),
    };
    const silenceMs = 1_000;
    const watched = await bench().open({ telemetry, timings: { silenceMs } });
    await fill(0, 1);
    const { reads } = bench().server;
    const iterator = watched.subscribe({ after: BEGINNING, signal: stop.signal });
    const taken = take(iterator, has(2));
    // Longer than the time after which a missing event means silence.
    const end = performance.now() + 1.5 * silenceMs;
    await eventually(() => performance.now() > end && bench().server.reads >= reads + 10);
    await fill(1, 2);
    expect(numbersOf((await taken).events)).to.deep.equal([0, 1]);
    expect(counted).to.be.empty;
    expect(bench().server.subscribed).to.equal(1);
  });
});
