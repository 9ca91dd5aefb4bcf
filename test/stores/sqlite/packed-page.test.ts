import { expect } from 'chai';
import {
  EventStoreError,
  MAX_EVENT_BYTES,
  type EventCodec,
  type NewEvent,
  type RecordedEvent,
} from '../../../domain/event-store.ts';
import { silent } from '../../../observability/telemetry.ts';
import { openDatabase } from '../../../stores/sqlite/database.ts';
import { openSqliteEventStore } from '../../../stores/sqlite/event-log/event-store.ts';
import {
  unpackRows,
  type PackedRows,
} from '../../../stores/sqlite/event-log/reading/packed-page.ts';
import { LogReader } from '../../../stores/sqlite/event-log/reading/reader.ts';
import { logFile } from '../../../stores/sqlite/event-log/schema.ts';
import { event, events } from '../../contracts/event-store-subject.ts';
import { plainCodec } from '../../support/plain-codec.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';

describe('rows packed into one string', () => {
  const directory = useTemporaryDirectory();

  const append = async (streams: Readonly<Record<string, readonly NewEvent[]>>): Promise<void> => {
    const store = await openSqliteEventStore({
      directory: directory(),
      codec: plainCodec,
      telemetry: silent,
    });
    for (const [stream, list] of Object.entries(streams)) await store.append(stream, list, 'none');
    await store.close();
  };

  const damage = (sql: string): void => {
    const file = logFile(directory());
    const database = openDatabase({ file, what: 'log', version: 1, migrate: () => {} });
    database.exec(sql);
    database.close();
  };

  /** All events, and how many of them were decoded one by one. */
  const read = (codec: EventCodec = plainCodec, prefixes?: readonly string[]) => {
    let alone = 0;
    const decode: EventCodec['decode'] = (raw) => {
      alone += 1;
      return codec.decode(raw);
    };
    const reader = new LogReader(logFile(directory()), { ...codec, decode });
    const all: RecordedEvent[] = [];
    const pages: number[] = [];
    for (let at = 0, isLast = false; !isLast;) {
      const page = reader.page(at, { prefixes });
      for (const entry of page.entries) all.push(entry.event());
      pages.push(page.entries.length);
      ({ isLast } = page);
      at = Number(page.upTo);
    }
    reader.close();
    return { all, alone, pages };
  };

  /** A codec that parses each event by itself. */
  const { decodeParsed: _, ...oneByOne } = plainCodec;

  it('are the same as when read one by one, whatever they contain', async () => {
    const texts = ['', 'ä', '漢字', '🎉', '"', '\\', '\\u0041', '],[', '\u2028', "it's"];
    await append({
      'one-1': texts.map((text, index) => event(index, { text, [text]: [text, null, 1.5e300] })),
      ...Object.fromEntries(texts.map((text) => [`one-${text}${text}`, [event(0, { text })]])),
      'two-1': events(700),
    });
    for (const prefixes of [undefined, ['one-'], ['two-', 'one-1'], []]) {
      const together = read(plainCodec, prefixes);
      const each = read(oneByOne, prefixes);
      expect(together.all).to.deep.equal(each.all);
      expect([together.alone, each.alone]).to.deep.equal([0, each.all.length]);
    }
  });

  it('are read one by one when one of them is broken', async () => {
    await append({ 'one-1': events(200), 'one-2': events(5) });
    const good = read().all;
    const broken = [`'{"n":'`, `'1,2'`, `'1],[3,"one-1",2,"id",1,1,{}'`, `''`, `'{}]'`, `' '`];
    for (const data of broken) {
      damage(`UPDATE events SET data = ${data} WHERE position = 70`);
      const { all, alone } = read();
      expect(alone).to.equal(32);
      expect(all[69]).to.include({ stream: 'one-1', revision: 69 });
      expect(all[69]?.fault).to.be.a('string');
      expect(all.toSpliced(69, 1)).to.deep.equal(good.toSpliced(69, 1));
    }
  });

  it('do not mistake an error of the log for a newer event', async () => {
    await append({ 'one-1': events(3) });
    const decodeParsed = (): never => {
      throw new EventStoreError('UNAVAILABLE', 'away');
    };
    const reader = new LogReader(logFile(directory()), { ...plainCodec, decodeParsed });
    expect(() => reader.page(0).entries[0]?.event()).to.throw(EventStoreError, 'away');
    reader.close();
  });

  it('are fewer per page when they are large', async () => {
    const text = 'x'.repeat(MAX_EVENT_BYTES - 1_000);
    await append({ 'one-1': [...events(3), ...events(70).map((_each, n) => event(n, { text }))] });
    const { all, pages } = read();
    expect(all).to.have.lengthOf(73);
    // Four MiB, plus the row that exceeds them.
    for (const count of pages) expect(count).to.be.at.most(20);
  });

  it('are rejected when they differ from the count', () => {
    const row = (position: number): string => `[${position},"one-1",0,"id",1,1,{},{}]`;
    const part = { after: 4, upTo: 6, count: 2, text: `[${row(5)},${row(6)}]` };
    expect(unpackRows(part)).to.have.lengthOf(2);
    const others: Partial<PackedRows>[] = [
      { count: 1 },
      { upTo: 7 },
      { after: 5 },
      { text: `[${row(6)},${row(5)}]` },
      { text: `[${row(5)},[6,"one-1",0,"id",1,1,{}]]` },
      { text: `[${row(5)},{}]` },
      { text: `[${row(5)},6]` },
      { text: `[${row(5)}` },
    ];
    for (const other of others) expect(unpackRows({ ...part, ...other })).to.equal(null);
  });
});
