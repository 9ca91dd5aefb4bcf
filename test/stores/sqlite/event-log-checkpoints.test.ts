import { statSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import type { EventStore } from '../../../domain/event-store.ts';
import { silent } from '../../../observability/telemetry.ts';
import { openSqliteEventStore } from '../../../stores/sqlite/event-log/event-store.ts';
import { logFile } from '../../../stores/sqlite/event-log/schema.ts';
import { event } from '../../contracts/event-store-subject.ts';
import { plainCodec } from '../../support/plain-codec.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';

/** Callers per store. Each appends again as soon as its last append was acknowledged. */
const CALLERS = 20;
/** Bytes of an event's text, so that few commits fill many pages. */
const TEXT = 64 * 1024;
const MIB = 1024 * 1024;
/** The bytes that each store appends. */
const APPENDED = 150 * MIB;
/** Several times the size that one checkpoint moves, because readers may delay it. */
const MAX_WAL_BYTES = 80 * MIB;

describe("the embedded log's WAL", function () {
  this.timeout(60_000);
  const directory = useTemporaryDirectory();
  const wal = (): number => statSync(`${logFile(directory())}-wal`).size;

  /** Appends from all callers at once, to separate streams. Resolves with the largest WAL size seen. */
  async function appendMuch(store: EventStore, name: string): Promise<number> {
    const payload = { text: 'x'.repeat(TEXT) };
    let left = APPENDED / TEXT;
    let longest = 0;
    const caller = async (_: unknown, number: number): Promise<void> => {
      for (let at = 0; left > 0; at += 1) {
        left -= 1;
        const expected = at === 0 ? 'none' : at - 1;
        await store.append(`${name}-${number}`, [event(at, payload)], expected);
        longest = Math.max(longest, wal());
      }
    };
    await Promise.all(Array.from({ length: CALLERS }, caller));
    return longest;
  }

  it('has a limited size while several processes write', async () => {
    const open = (): Promise<EventStore> =>
      openSqliteEventStore({ directory: directory(), codec: plainCodec, telemetry: silent });
    const stores = [await open(), await open()];
    try {
      const longest = await Promise.all(stores.map((store, i) => appendMuch(store, `writer${i}`)));
      expect(Math.max(...longest)).to.be.below(MAX_WAL_BYTES);
    } finally {
      await Promise.all(stores.map((store) => store.close()));
    }
    expect(statSync(join(directory(), 'events.sqlite')).size).to.be.above(2 * APPENDED);
  });
});
