import { expect } from 'chai';
import type { EventStore, NewEvent, RecordedEvent } from '../../../domain/event-store.ts';
import { silent, type Telemetry } from '../../../observability/telemetry.ts';
import { openSqliteEventStore } from '../../../stores/sqlite/event-log/event-store.ts';
import { ReadAhead } from '../../../stores/sqlite/event-log/reading/read-ahead.ts';
import { LogReader } from '../../../stores/sqlite/event-log/reading/reader.ts';
import { logFile } from '../../../stores/sqlite/event-log/schema.ts';
import { brokenEvent, event, events } from '../../contracts/event-store-subject.ts';
import { leavesNothingOpen } from '../../support/leaks.ts';
import { plainCodec } from '../../support/plain-codec.ts';
import { eventually, found, Signal } from '../../support/signals.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';

describe('reading the log ahead', function () {
  this.timeout(30_000);
  const directory = useTemporaryDirectory();
  const opened: { close(): Promise<void> | void }[] = [];
  leavesNothingOpen();
  afterEach(async () => {
    for (const each of opened.splice(0).reverse()) await each.close();
  });

  const open = async (telemetry: Telemetry = silent): Promise<EventStore> => {
    const store = await openSqliteEventStore({
      ...{ directory: directory(), codec: plainCodec, telemetry },
    });
    opened.push(store);
    return store;
  };
  const openReader = (): LogReader => {
    const reader = new LogReader(logFile(directory()), plainCodec);
    opened.push(reader);
    return reader;
  };
  const readAhead = (
    until: number,
    prefixes?: readonly string[],
    telemetry = silent,
  ): ReadAhead => {
    const ahead = new ReadAhead({ file: logFile(directory()), until, prefixes }, telemetry);
    opened.push({ close: () => ahead.end() });
    return ahead;
  };
  /** All that it has read until it ends by itself. */
  const allOf = async (
    ahead: ReadAhead,
    reader: LogReader,
    prefixes: readonly string[] | undefined,
  ): Promise<readonly RecordedEvent[]> => {
    const read: RecordedEvent[] = [];
    let page: Awaited<ReturnType<ReadAhead['next']>> = await found(() => ahead.next(0));
    while (page !== undefined) {
      read.push(...reader.unpacked(page, { prefixes }).events);
      page = await ahead.next(page.upTo);
    }
    return read;
  };

  it('gives what reading gives, page by page, and ends', async () => {
    const store = await open();
    const appended: NewEvent[] = [
      event(0, { text: 'old 漢字 🎉' }),
      brokenEvent(),
      ...events(2_600, 2),
    ];
    await store.append('one-1', appended, 'none');
    await store.append('two-1', events(1_200), 'none');
    await store.append('one-2', events(3), 'none');
    const reader = openReader();
    for (const prefixes of [undefined, ['one-']]) {
      const expected: RecordedEvent[] = [];
      for (let at = 0, isLast = false; !isLast;) {
        const page = reader.page(at, { prefixes });
        expected.push(...page.events);
        ({ upTo: at, isLast } = page);
      }
      const read = await allOf(readAhead(reader.head(), prefixes), reader, prefixes);
      expect(read).to.deep.equal(expected);
    }
  });

  it('gives nothing where there is no log, and says so', async () => {
    const warned = new Signal<string>();
    const log = { ...silent.log, warn: warned.send };
    const ahead = readAhead(1, undefined, { ...silent, log });
    expect(await warned.wait()).to.include('reading ahead');
    await ahead.end();
    expect(await ahead.next(0)).to.equal(undefined);
  });

  it('can be ended before it has begun, and in the midst', async () => {
    const store = await open();
    await store.append('one', events(3_000), 'none');
    await readAhead(3_000).end();
    const ahead = readAhead(3_000);
    await eventually(async () => (await ahead.next(0)) !== undefined);
    await ahead.end();
    expect(await ahead.next(500)).to.equal(undefined);
  });

  it('has not failed where it is ended again, or asked for more, when it has just ended', async () => {
    const warnings: string[] = [];
    const warn = (message: string): number => warnings.push(message);
    const telemetry = { ...silent, log: { ...silent.log, warn } };
    const store = await open();
    await store.append('one', events(3_000), 'none');
    const twice = readAhead(3_000, undefined, telemetry);
    await Promise.all([twice.end(), twice.end()]);
    const reader = openReader();
    const all = readAhead(reader.head(), undefined, telemetry);
    expect(await allOf(all, reader, undefined)).to.have.lengthOf(3_000);
    await all.end();
    expect(warnings).to.deep.equal([]);
  });

  it('delivers a long log as following it does, and what comes behind it', async () => {
    const told: Signal<string> = new Signal('what is told of reading ahead');
    const store = await open({ ...silent, log: { ...silent.log, debug: told.send } });
    const appends = Array.from({ length: 24 }, (_, i) => {
      return { stream: `one-${i}`, events: events(1_000), expected: 'none' } as const;
    });
    await store.appendInOrder(appends);
    const wanted = appends.flatMap((append) => append.events.map(({ id }) => id));
    const stop = new AbortController();
    const read: string[] = [];
    const options = { after: '', prefixes: ['one-'], ahead: true, signal: stop.signal };
    for await (const message of store.subscribe(options)) {
      // From here on it is the thread that reads.
      await told.wait();
      if (message.kind === 'events') read.push(...message.events.map(({ id }) => id));
      else if (read.length > wanted.length) stop.abort();
      else {
        expect(read).to.deep.equal(wanted);
        await store.append('one-24', [event(0)], 'none');
      }
    }
    expect(read).to.have.lengthOf(24_001);
  });

  for (const ahead of [false, true]) {
    it(`tells on the way how far it has come where nothing is wanted${ahead ? ', of the thread too' : ''}`, async () => {
      const store = await open();
      const appends = Array.from({ length: 21 }, (_, i) => {
        return { stream: `one-${i}`, events: events(1_000), expected: 'none' } as const;
      });
      await store.appendInOrder(appends);
      const passed: number[] = [];
      const onPassed = (position: string): void => void passed.push(Number(position));
      const { signal } = new AbortController();
      const options = { after: '', prefixes: ['two-'], once: true, ahead, onPassed, signal };
      for await (const message of store.subscribe(options)) {
        expect(message.kind).to.equal('caught-up');
      }
      expect(passed.slice(0, 5)).to.deep.equal([4_000, 8_000, 12_000, 16_000, 20_000]);
      expect(passed.at(-1)).to.equal(21_000);
    });
  }

  it('is over with the store, whoever holds on to what was delivered', async () => {
    const store = await open();
    await store.appendInOrder(
      Array.from({ length: 21 }, (_, i) => {
        return { stream: `one-${i}`, events: events(1_000), expected: 'none' } as const;
      }),
    );
    const { signal } = new AbortController();
    const messages = store.subscribe({ after: '', ahead: true, signal })[Symbol.asyncIterator]();
    expect((await messages.next()).value).to.include({ kind: 'events' });
    await store.close();
    const error: unknown = await messages.next().catch((cause: unknown) => cause);
    expect(error).to.include({ code: 'UNAVAILABLE' });
  });
});
