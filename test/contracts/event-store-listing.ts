import { expect } from 'chai';
import {
  BEGINNING,
  type EventStore,
  type RecordedEvent,
  type StreamEnd,
} from '../../domain/event-store.ts';
import {
  event,
  events,
  newPrefix,
  newStream,
  rejected,
  type EventStoreSubject,
  type Subject,
} from './event-store-subject.ts';

/** More events than an engine reads at a time. */
const LARGE_LIMIT = 400;

/** The contract of `listStreams`. */
export function describeListing(subject: Subject): void {
  describe('listing streams', () => {
    it('returns each stream with a prefix once, with its end, page by page', async () => {
      const { store } = subject();
      const prefix = newPrefix();
      const from = await startOf(subject());
      const revisions = new Map<string, number>();
      for (let count = 1; count <= 7; count += 1) {
        const stream = newStream(prefix);
        await store.append(stream, events(count), 'none');
        await store.append(newStream(), [event(0)], 'none');
        revisions.set(stream, count - 1);
      }
      for (const limit of [1, 3, 500]) {
        const listed = await listedOf(store, prefix, limit, from);
        const ends = listed.map(({ stream, revision }) => [stream, revision] as const);
        expect(ends, `pages of ${limit}`).to.have.deep.members([...revisions]);
      }
    });

    it("returns when each stream's last event occurred", async () => {
      const { store } = subject();
      const stream = newStream();
      const from = await startOf(subject());
      await store.append(stream, events(2), 'none');
      const [listed] = await listedOf(store, stream, 10, from);
      expect(listed?.lastAt).to.equal('2026-01-01T00:00:00.000Z');
    });

    it('leaves out a completely truncated stream', async () => {
      const { store } = subject();
      const prefix = newPrefix();
      const from = await startOf(subject());
      const [gone, there] = [newStream(prefix), newStream(prefix)];
      for (const stream of [gone, there]) await store.append(stream, events(3), 'none');
      await store.truncate(gone, 3);
      await store.truncate(there, 1);
      const listed = await listedOf(store, prefix, 10, from);
      expect(listed.map(({ stream }) => stream)).to.deep.equal([there]);
    });

    it('returns nothing for a prefix without streams', async () => {
      const { store } = subject();
      const from = await startOf(subject());
      await store.append(newStream(), [event(0)], 'none');
      expect(await listedOf(store, newPrefix(), 10, from)).to.deep.equal([]);
    });
  });
}

/** The contract of `readAllBackwards`. */
export function describeReadingBackwards(subject: Subject): void {
  describe('reading the log backwards', () => {
    it('returns everything strictly before a position, the last first, page by page', async () => {
      const { store } = subject();
      const prefix = newPrefix();
      // Events of other tests in the same log, some of a newer release, lie before these.
      const { position: start } = await store.append(newStream(), events(LARGE_LIMIT), 'none');
      const appended: string[] = [];
      for (let n = 0; n < 6; n += 1) {
        const batch = events(3, 3 * n);
        await store.append(newStream(prefix), batch, 'none');
        appended.unshift(...batch.map(({ id }) => id).reverse());
      }
      for (const limit of [1, 4, LARGE_LIMIT]) {
        const read: string[] = [];
        for (let before: string | null = null; ;) {
          const page: readonly RecordedEvent[] = await store.readAllBackwards(before, limit);
          const after = page.filter(({ position }) => position > start);
          read.push(...after.filter(({ stream }) => stream.startsWith(prefix)).map(({ id }) => id));
          before = page.at(-1)?.position ?? null;
          if (before === null || before <= start) break;
        }
        expect(read, `pages of ${limit}`).to.deep.equal(appended);
      }
    });

    it('begins at the end for a position beyond it', async () => {
      const { store } = subject();
      const { position } = await store.append(newStream(), [event(0)], 'none');
      const [last] = await store.readAllBackwards(position.replaceAll(/./g, '9'), 1);
      expect((last?.position ?? '') >= position).to.equal(true);
    });

    it('returns nothing before the first event', async () => {
      const { store } = subject();
      await store.append(newStream(), [event(0)], 'none');
      const [first] = await store.readAll(BEGINNING, 1);
      expect(await store.readAllBackwards(first?.position ?? '', 10)).to.deep.equal([]);
    });

    it('rejects a position of another engine as INVALID_EVENT', async () => {
      await rejected('INVALID_EVENT', subject().store.readAllBackwards('not a position', 1));
    });
  });
}

/** Where listing must begin to find new streams; undefined: from the start. */
async function startOf({ store, capabilities }: EventStoreSubject): Promise<string | undefined> {
  if (!capabilities.listsFromPositions) return undefined;
  const head = await store.head();
  return head === BEGINNING ? undefined : head;
}

/** All streams with a prefix, page by page. */
async function listedOf(
  store: EventStore,
  prefix: string,
  limit: number,
  from: string | undefined,
): Promise<readonly StreamEnd[]> {
  const listed: StreamEnd[] = [];
  for (let after: string | null | undefined = from; after !== null;) {
    const page = await store.listStreams({
      prefix,
      limit,
      ...(after === undefined ? {} : { after }),
    });
    expect(page.streams.length).to.be.at.most(limit);
    listed.push(...page.streams);
    after = page.next;
  }
  return listed;
}
