import { expect } from 'chai';
import { BEGINNING, type EventStore, type RecordedEvent } from '../../../domain/event-store.ts';
import type { StreamShare } from '../../../domain/stream-share.ts';
import { silent } from '../../../observability/telemetry.ts';
import { openSqliteEventStore } from '../../../stores/sqlite/event-log/event-store.ts';
import { event, events } from '../../contracts/event-store-subject.ts';
import { plainCodec } from '../../support/plain-codec.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';

describe('shares of the streams of an embedded log', () => {
  const directory = useTemporaryDirectory();
  let store: EventStore;
  beforeEach(async () => {
    const options = { directory: directory(), codec: plainCodec, telemetry: silent };
    store = await openSqliteEventStore(options);
  });
  afterEach(() => store.close());

  const { signal } = new AbortController();
  const read = async (share: StreamShare): Promise<readonly RecordedEvent[]> => {
    const delivered: RecordedEvent[] = [];
    const options = { after: BEGINNING, prefixes: ['run-'], share, once: true, signal };
    for await (const message of store.subscribe(options)) {
      if (message.kind === 'events') delivered.push(...message.events);
      else expect(message.position).to.equal(await store.head());
    }
    return delivered;
  };

  it('contain each stream once, with all of its events, and are of similar size', async () => {
    // Like runs, each of which is created together with a stream of another kind.
    const streams = Array.from({ length: 300 }, (_, n) => `run-${String(n)}`);
    for (const stream of streams) {
      await store.append(`key-${stream}`, [event(0)], 'none');
      await store.append(stream, [event(0)], 'none');
    }
    for (const stream of streams) await store.append(stream, events(2, 1), 0);
    for (const of of [1, 2, 3, 4]) {
      const found: string[] = [];
      for (let index = 0; index < of; index += 1) {
        const delivered = await read({ index, of });
        const own = [...new Set(delivered.map(({ stream }) => stream))];
        for (const stream of own) {
          const revisions = delivered.filter((each) => each.stream === stream);
          expect(revisions.map(({ revision }) => revision)).to.deep.equal([0, 1, 2]);
        }
        expect(own.length, `${index} of ${of}`).to.be.within(0.8 * (300 / of), 1.2 * (300 / of));
        found.push(...own);
      }
      expect(found.sort()).to.deep.equal([...streams].sort());
    }
  });

  it('can only be read once, not followed', async () => {
    const share = { index: 0, of: 2 };
    const following = store.subscribe({ after: BEGINNING, prefixes: ['run-'], share, signal });
    const error: unknown = await following[Symbol.asyncIterator]()
      .next()
      .catch((reason: unknown) => reason);
    expect(error).to.be.instanceOf(TypeError);
  });
});
