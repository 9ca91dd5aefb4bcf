import { expect } from 'chai';
import { describeAppending } from './event-store-appending.ts';
import { describeSharing } from './event-store-following.ts';
import { describeListing, describeReadingBackwards } from './event-store-listing.ts';
import { describeReading } from './event-store-reading.ts';
import { event, newStream, rejected, type EventStoreSubject } from './event-store-subject.ts';
import { describeSubscribing } from './event-store-subscribing.ts';

export type { EventStoreCapabilities, EventStoreSubject } from './event-store-subject.ts';

/**
 * What every event store must do, whatever its engine: the sentences of the port's comments. Streams have
 * names that nothing else uses, and subscriptions begin at the head, so the log need not be empty.
 *
 * @param name stands in the titles: "the embedded event log"
 * @param open called before each test, with the plain codec of `test/support`
 */
export function describeEventStoreContract(
  name: string,
  open: () => Promise<EventStoreSubject>,
): void {
  describe(name, () => {
    let current: EventStoreSubject | undefined;
    const subject = (): EventStoreSubject => {
      if (current === undefined) throw new Error('There is a subject only during a test');
      return current;
    };
    beforeEach(async () => {
      current = await open();
    });
    afterEach(async () => {
      await current?.close();
      current = undefined;
    });

    describeAppending(subject);
    describeReading(subject);
    describeListing(subject);
    describeReadingBackwards(subject);
    describeSubscribing(subject);
    describeSharing(subject);

    it('responds to a ping', async () => {
      await subject().store.ping();
    });

    it('finishes pending appends when closed, and accepts none after', async () => {
      const { store, reopen } = subject();
      const stream = newStream();
      const append = store.append(stream, [event(0)], 'none');
      const reopened = reopen();
      expect((await append).revision).to.equal(0);
      expect(await (await reopened).readStream(stream)).to.have.lengthOf(1);
      await rejected('UNAVAILABLE', store.append(stream, [event(1)], 0));
    });
  });
}
