import {
  MaxAppendSizeExceededError,
  StreamDeletedError,
  StreamNotFoundError,
  WrongExpectedVersionError,
  jsonEvent,
  type AllStreamRecordedEvent,
  type AppendExpectedRevision,
  type EventData,
  type ResolvedEvent,
} from '@eventstore/db-client';
import { expect } from 'chai';
import { randomUUID } from 'node:crypto';
import { silent } from '../../../observability/telemetry.ts';
import { readConnectionUrl } from '../../../stores/eventstoredb/connecting/connection-url.ts';
import { Connection } from '../../../stores/eventstoredb/connecting/connection.ts';
import { toPosition } from '../../../stores/eventstoredb/position.ts';
import { defaultTimings } from '../../../stores/eventstoredb/connecting/timings.ts';
import { EventStoreDbServer } from '../../support/eventstoredb-server/server.ts';
import { leavesNothingOpen } from '../../support/leaks.ts';
import { eventually } from '../../support/signals.ts';
import { realServerAt } from '../../support/left-out.ts';

const realServer = realServerAt('SVC_TEST_ESDB_URL');

/**
 * The adapter's assumptions about a server, tested against the stand-in, and against a real server named by the
 * environment. This shows where the stand-in differs.
 */
function describeFacts(
  name: string,
  start: () => Promise<{ url: string; stop: () => void }>,
): void {
  describe(name, () => {
    let connection: Connection;
    let stream: string;
    let stop: () => void;

    afterEach(async () => {
      await connection.close();
      stop();
    });
    leavesNothingOpen();
    beforeEach(async () => {
      const server = await start();
      stop = server.stop;
      connection = new Connection(readConnectionUrl(server.url), defaultTimings, silent);
      stream = `facts-${randomUUID()}`;
    });

    const event = (id: string = randomUUID(), filling = '') =>
      jsonEvent({ id, type: 'Noted', data: { filling } });
    const append = (events: EventData[], expectedRevision: AppendExpectedRevision, to = stream) => {
      const { credentials } = connection;
      return connection.appendToStream(to, events, { expectedRevision, credentials });
    };
    const read = (options: Parameters<Connection['readStream']>[1] = {}) =>
      all(connection.readStream(stream, options));

    it('answers with the position of the last event, as in a read', async () => {
      const { position, nextExpectedRevision } = await append([event(), event()], 'no_stream');
      expect(nextExpectedRevision).to.equal(1n);
      const [, second] = await read();
      expect(second?.position).to.deep.equal(position);
    });

    it('recognises repeated events only where the expected revision lies behind the stream', async () => {
      const events = [event(), event()];
      await append(events, 'no_stream');
      expect((await append(events, 'no_stream')).nextExpectedRevision).to.equal(1n);
      expect((await append(events.slice(1), 0n)).nextExpectedRevision).to.equal(1n);
      expect((await append(events, 1n)).nextExpectedRevision).to.equal(3n);
    });

    it('rejects events of which only some exist', async () => {
      const first = event();
      await append([first], 'no_stream');
      for (const expected of ['no_stream', 'any'] as const) {
        const refused = await failureOf(append([first, event()], expected));
        expect(refused).to.be.instanceOf(WrongExpectedVersionError);
        expect((refused as WrongExpectedVersionError).actualVersion).to.equal(0n);
      }
    });

    it('reports how far a softly deleted stream was, and continues from there', async () => {
      await append([event(), event()], 'no_stream');
      await connection.deleteStream(stream, { credentials: connection.credentials });
      expect(await failureOf(read())).to.be.instanceOf(StreamNotFoundError);
      const refused = await failureOf(append([event()], 7n));
      expect((refused as WrongExpectedVersionError).actualVersion).to.equal(1n);
      const again = event();
      expect((await append([again], 'no_stream')).nextExpectedRevision).to.equal(2n);
      // A server makes the stream visible again with a record of its own, right behind that append.
      await eventually(async () => !((await failureOf(read())) instanceof StreamNotFoundError));
      expect((await read()).map(({ id }) => id)).to.deep.equal([again.id]);
    });

    it('lets a permanently deleted stream be neither read nor written', async () => {
      await append([event()], 'no_stream');
      await connection.tombstoneStream(stream, { credentials: connection.credentials });
      expect(await failureOf(read())).to.be.instanceOf(StreamDeletedError);
      expect(await failureOf(append([event()], 'any'))).to.be.instanceOf(StreamDeletedError);
    });

    it('keeps the events of a permanently deleted stream, and its deletion, in the log', async () => {
      await append([event()], 'no_stream');
      const [first] = await read();
      await connection.tombstoneStream(stream, { credentials: connection.credentials });
      const log = await all(
        connection.readAll({ fromPosition: placeOf(first), direction: 'forwards' }),
      );
      const left = log.filter(({ streamId }) => streamId === stream);
      expect(left.map(({ type }) => type)).to.deep.equal(['Noted', '$streamDeleted']);
      expect(left[1]?.revision).to.equal(2n ** 63n - 1n);
    });

    it('accepts at most 1 MiB at a time', async () => {
      const half = (): ReturnType<typeof event> => event(randomUUID(), 'x'.repeat(600_000));
      const refused = await failureOf(append([half(), half()], 'no_stream'));
      expect(refused).to.be.instanceOf(MaxAppendSizeExceededError);
      expect(await failureOf(read())).to.be.instanceOf(StreamNotFoundError);
    });

    it('hides truncated events in the stream, but not in the log', async () => {
      const events = [event(), event(), event()];
      await append(events.slice(0, 1), 'no_stream');
      const [first] = await read();
      await append(events.slice(1), 0n);
      const truncation = jsonEvent({ type: '$metadata', data: { $tb: 2 } });
      await append([truncation], 'no_stream', `$$${stream}`);
      const left = [events[2]?.id];
      expect((await read()).map(({ id }) => id)).to.deep.equal(left);
      expect((await read({ fromRevision: 0n, maxCount: 1 })).map(({ id }) => id)).to.deep.equal(
        left,
      );
      const backwards = await read({ direction: 'backwards', fromRevision: 'end' });
      expect(backwards.map(({ id }) => id)).to.deep.equal(left);
      const log = await all(
        connection.readAll({ fromPosition: placeOf(first), direction: 'forwards' }),
      );
      const ids = log.filter(({ streamId }) => streamId === stream).map(({ id }) => id);
      expect(ids).to.deep.equal(events.map(({ id }) => id));
    });

    it('includes the starting position in forward reads of the log, but not in backward ones', async () => {
      await append([event(), event()], 'no_stream');
      const [first, second] = await read();
      const one = { fromPosition: placeOf(second), maxCount: 1 } as const;
      const [at] = await all(connection.readAll({ ...one, direction: 'forwards' }));
      const [before] = await all(connection.readAll({ ...one, direction: 'backwards' }));
      expect(at?.id).to.equal(second?.id);
      // Others may write between the two, but nothing that stands behind the second.
      const places = [first, before, second].map((found) => toPosition(placeOf(found)));
      expect(places).to.deep.equal([...places].sort());
      expect(places[1]).not.to.equal(places[2]);
    });

    it('reads a stream backwards from beyond its end', async () => {
      const last = event();
      await append([event(), last], 'no_stream');
      const read99 = await read({ direction: 'backwards', fromRevision: 99n, maxCount: 1 });
      expect(read99.map(({ id }) => id)).to.deep.equal([last.id]);
    });
  });
}

/** All that a read gives. */
async function all(reading: AsyncIterable<ResolvedEvent>): Promise<AllStreamRecordedEvent[]> {
  const events: AllStreamRecordedEvent[] = [];
  for await (const { event } of reading) {
    if (event !== undefined) events.push(event as AllStreamRecordedEvent);
  }
  return events;
}

function placeOf(event: AllStreamRecordedEvent | undefined): AllStreamRecordedEvent['position'] {
  if (event?.position === undefined) throw new Error('there is no such event');
  return event.position;
}

function failureOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => 'it resolved',
    (error: unknown) => error,
  );
}

describe('what the adapter assumes about EventStoreDB', () => {
  describeFacts('of the stand-in', async () => {
    const server = await EventStoreDbServer.start();
    return { url: server.url, stop: () => server.stop() };
  });
  if (realServer !== undefined) {
    describeFacts('of the server that the environment names', () =>
      Promise.resolve({ url: realServer, stop: () => undefined }),
    );
  }
});
