import { expect } from 'chai';
import type { EventStore } from '../../../domain/event-store.ts';
import { silent } from '../../../observability/telemetry.ts';
import { openSqliteEventStore } from '../../../stores/sqlite/event-log/event-store.ts';
import { LogReader } from '../../../stores/sqlite/event-log/reading/reader.ts';
import { logFile } from '../../../stores/sqlite/event-log/schema.ts';
import { event, events } from '../../contracts/event-store-subject.ts';
import { plainCodec } from '../../support/plain-codec.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';

/** So many events that removing them takes some tenths of a second. */
const EVENTS = 60_000;

describe('truncating a long stream of the embedded event log', () => {
  const directory = useTemporaryDirectory();
  let store: EventStore;

  beforeEach(async () => {
    const shared = { directory: directory(), codec: plainCodec, telemetry: silent };
    store = await openSqliteEventStore(shared);
    const parts = Array.from({ length: EVENTS / 1000 }, () => events(1000));
    await Promise.all(parts.map((part) => store.append('long', part, 'any')));
  });
  afterEach(() => store.close());

  it('lets appends run between its steps', async () => {
    const ended: string[] = [];
    const truncated = store.truncate('long', EVENTS - 1).then(() => ended.push('truncated'));
    for (const name of ['one', 'two', 'three']) {
      await store.append(name, [event(0)], 'none');
      ended.push(name);
    }
    await truncated;
    expect(ended).to.deep.equal(['one', 'two', 'three', 'truncated']);
    const [left, ...more] = await store.readStream('long');
    expect(left?.revision).to.equal(EVENTS - 1);
    expect(more).to.deep.equal([]);
    expect((await store.append('long', [event(0)], EVENTS - 1)).revision).to.equal(EVENTS);
  });

  it('lets pings, other truncations and appends run between its steps', async () => {
    await store.append('short', events(3), 'none');
    const ended: string[] = [];
    const note = (name: string) => (): number => ended.push(name);
    await Promise.all([
      store.truncate('long', EVENTS).then(note('truncated')),
      store.ping().then(note('answered')),
      store.truncate('short', 2).then(note('cut')),
      store.append('one', [event(0)], 'none').then(note('one')),
    ]);
    expect(ended).to.have.ordered.members(['answered', 'cut', 'one', 'truncated']);
  });

  it('truncates many streams at once, a long one among them', async () => {
    const names = Array.from({ length: 250 }, (_, at) => `short-${at}`);
    await Promise.all(names.map((name) => store.append(name, events(4), 'none')));
    const cuts = names.flatMap((name, at) => (at === 7 ? [name, 'long'] : [name]));
    await Promise.all(cuts.map((name) => store.truncate(name, name === 'long' ? EVENTS - 1 : 3)));
    for (const name of [...names, 'long']) {
      const left = await store.readStream(name);
      expect(left.map(({ revision }) => revision)).to.deep.equal([
        name === 'long' ? EVENTS - 1 : 3,
      ]);
    }
  });

  it('is completed by a store that is closed in the meantime', async () => {
    const truncated = store.truncate('long', EVENTS);
    await store.close();
    await truncated;
    const reader = new LogReader(logFile(directory()), plainCodec);
    try {
      expect(reader.stream('long', { limit: 10 })).to.deep.equal([]);
      expect(reader.head()).to.equal(EVENTS);
    } finally {
      reader.close();
    }
  });
});
