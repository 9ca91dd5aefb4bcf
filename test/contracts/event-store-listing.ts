import { expect } from 'chai';
import type { EventStore, StreamEnd } from '../../domain/event-store.ts';
import { event, events, newPrefix, newStream, type Subject } from './event-store-subject.ts';

/** What the port says of `listStreams`. */
export function describeListing(subject: Subject): void {
  describe('listing streams', () => {
    it('gives each stream of a prefix once, with its end, page by page', async () => {
      const { store } = subject();
      const prefix = newPrefix();
      const revisions = new Map<string, number>();
      for (let count = 1; count <= 7; count += 1) {
        const stream = newStream(prefix);
        await store.append(stream, events(count), 'none');
        await store.append(newStream(), [event(0)], 'none');
        revisions.set(stream, count - 1);
      }
      for (const limit of [1, 3, 500]) {
        const listed = await listedOf(store, prefix, limit);
        const ends = listed.map(({ stream, revision }) => [stream, revision] as const);
        expect(ends, `pages of ${limit}`).to.have.deep.members([...revisions]);
      }
    });

    it('says when the last event of each occurred', async () => {
      const { store } = subject();
      const stream = newStream();
      await store.append(stream, events(2), 'none');
      const [listed] = await listedOf(store, stream, 10);
      expect(listed?.lastAt).to.equal('2026-01-01T00:00:00.000Z');
    });

    it('leaves out a stream that is truncated away', async () => {
      const { store } = subject();
      const prefix = newPrefix();
      const [gone, there] = [newStream(prefix), newStream(prefix)];
      for (const stream of [gone, there]) await store.append(stream, events(3), 'none');
      await store.truncate(gone, 3);
      await store.truncate(there, 1);
      const listed = await listedOf(store, prefix, 10);
      expect(listed.map(({ stream }) => stream)).to.deep.equal([there]);
    });

    it('gives nothing for a prefix that no stream has', async () => {
      expect(await listedOf(subject().store, newPrefix(), 10)).to.deep.equal([]);
    });
  });
}

/** All streams of a prefix, a page after the other. */
async function listedOf(
  store: EventStore,
  prefix: string,
  limit: number,
): Promise<readonly StreamEnd[]> {
  const listed: StreamEnd[] = [];
  for (let after: string | null | undefined; after !== null;) {
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
