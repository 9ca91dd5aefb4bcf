import {
  DeadlineExceededError,
  InvalidArgumentError,
  MaxAppendSizeExceededError,
  StreamDeletedError,
  StreamNotFoundError,
  WrongExpectedVersionError,
  jsonEvent,
  type AllStreamRecordedEvent,
  type JSONEventData,
  type ResolvedEvent,
} from '@eventstore/db-client';
import type streams from '@eventstore/db-client/generated/streams_pb.js';
import { expect } from 'chai';
import { randomUUID } from 'node:crypto';
import type { EncodedEvent, ExpectedRevision } from '../../../domain/event-store.ts';
import { silent } from '../../../observability/telemetry.ts';
import { AppendCalls } from '../../../stores/eventstoredb/appending/append-calls.ts';
import { readBatchAnswer } from '../../../stores/eventstoredb/appending/batch-answer.ts';
import { encodeBatchAppend } from '../../../stores/eventstoredb/appending/batch-request.ts';
import { classicAppend } from '../../../stores/eventstoredb/appending/classic-append.ts';
import { readConnectionUrl } from '../../../stores/eventstoredb/connecting/connection-url.ts';
import type { BatchCall, Connection } from '../../../stores/eventstoredb/connecting/connection.ts';
import { connectLog } from '../../../stores/eventstoredb/log-parts.ts';
import { toPosition } from '../../../stores/eventstoredb/position.ts';
import { defaultTimings } from '../../../stores/eventstoredb/connecting/timings.ts';
import { EventStoreDbServer } from '../../support/eventstoredb-server/server.ts';
import { leavesNothingOpen } from '../../support/leaks.ts';
import { Signal, eventually } from '../../support/signals.ts';
import { realServerAt } from '../../support/left-out.ts';

const realServer = realServerAt('SVC_TEST_ESDB_URL');

/** How events are appended: on the shared stream, or by separate calls. Most facts are the same for both. */
type Way = 'batched' | 'single calls';

/**
 * The adapter's assumptions about a server, tested against the stand-in, and against a real server named by the
 * environment. This shows where the stand-in differs.
 */
function describeFacts(
  name: string,
  start: () => Promise<{ url: string; stop: () => void }>,
  way: Way,
): void {
  describe(`${name}, ${way}`, () => {
    let connection: Connection;
    let calls: AppendCalls;
    let stream: string;
    let stop: () => void;

    afterEach(async () => {
      calls.close();
      await connection.close();
      stop();
    });
    leavesNothingOpen();
    beforeEach(async () => {
      const server = await start();
      stop = server.stop;
      const log = connectLog(readConnectionUrl(server.url), defaultTimings, silent);
      connection = log.connection;
      calls = new AppendCalls(log);
      stream = `facts-${randomUUID()}`;
    });

    const event = (id: string = randomUUID(), filling = '') =>
      jsonEvent({ id, type: 'Noted', data: { filling } });
    const append = (events: JSONEventData[], expected: ExpectedRevision, to = stream) => {
      const given = { stream: to, events: events.map(encoded), expected };
      return way === 'batched'
        ? calls.append(given, DEADLINE_MS)
        : classicAppend(connection, given, DEADLINE_MS);
    };
    const read = (options: Parameters<Connection['readStream']>[1] = {}) =>
      all(connection.readStream(stream, options));

    it('returns the position of the last event, as in a read', async () => {
      const { position, nextExpectedRevision } = await append([event(), event()], 'none');
      expect(nextExpectedRevision).to.equal(1n);
      const [, second] = await read();
      expect(second?.position).to.deep.equal(position);
    });

    it('recognises repeated events only if the expected revision is lower than that of the stream', async () => {
      const events = [event(), event()];
      await append(events, 'none');
      expect((await append(events, 'none')).nextExpectedRevision).to.equal(1n);
      expect((await append(events.slice(1), 0)).nextExpectedRevision).to.equal(1n);
      expect((await append(events, 1)).nextExpectedRevision).to.equal(3n);
    });

    it('rejects events of which only some exist', async () => {
      const first = event();
      await append([first], 'none');
      for (const expected of ['none', 'any'] as const) {
        const refused = await failureOf(append([first, event()], expected));
        expect(refused).to.be.instanceOf(WrongExpectedVersionError);
        expect((refused as WrongExpectedVersionError).actualVersion).to.equal(0n);
      }
    });

    it('reports how far a softly deleted stream was, and continues from there', async () => {
      await append([event(), event()], 'none');
      await connection.deleteStream(stream, { credentials: connection.credentials });
      expect(await failureOf(read())).to.be.instanceOf(StreamNotFoundError);
      const refused = await failureOf(append([event()], 7));
      expect((refused as WrongExpectedVersionError).actualVersion).to.equal(1n);
      const again = event();
      expect((await append([again], 'none')).nextExpectedRevision).to.equal(2n);
      // A server makes the stream visible again with a record of its own, right behind that append.
      await eventually(async () => !((await failureOf(read())) instanceof StreamNotFoundError));
      expect((await read()).map(({ id }) => id)).to.deep.equal([again.id]);
    });

    it('lets a permanently deleted stream be neither read nor written', async () => {
      await append([event()], 'none');
      await connection.tombstoneStream(stream, { credentials: connection.credentials });
      expect(await failureOf(read())).to.be.instanceOf(StreamDeletedError);
      expect(await failureOf(append([event()], 'any'))).to.be.instanceOf(StreamDeletedError);
    });

    it('keeps the events of a permanently deleted stream, and its deletion, in the log', async () => {
      await append([event()], 'none');
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
      const refused = await failureOf(append([half(), half()], 'none'));
      expect(refused).to.be.instanceOf(MaxAppendSizeExceededError);
      expect(await failureOf(read())).to.be.instanceOf(StreamNotFoundError);
    });

    it('hides truncated events in the stream, but not in the log', async () => {
      const events = [event(), event(), event()];
      await append(events.slice(0, 1), 'none');
      const [first] = await read();
      await append(events.slice(1), 0);
      const truncation = jsonEvent({ type: '$metadata', data: { $tb: 2 } });
      await append([truncation], 'none', `$$${stream}`);
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
      await append([event(), event()], 'none');
      const [first, second] = await read();
      const one = { fromPosition: placeOf(second), maxCount: 1 } as const;
      const [at] = await all(connection.readAll({ ...one, direction: 'forwards' }));
      const [before] = await all(connection.readAll({ ...one, direction: 'backwards' }));
      expect(at?.id).to.equal(second?.id);
      // Others may write between the two, but nothing after the second.
      const places = [first, before, second].map((found) => toPosition(placeOf(found)));
      expect(places).to.deep.equal([...places].sort());
      expect(places[1]).not.to.equal(places[2]);
    });

    it('reads a stream backwards from beyond its end', async () => {
      const last = event();
      await append([event(), last], 'none');
      const read99 = await read({ direction: 'backwards', fromRevision: 99n, maxCount: 1 });
      expect(read99.map(({ id }) => id)).to.deep.equal([last.id]);
    });
  });
}

/** Facts about the shared stream alone. */
function describeStreamFacts(
  name: string,
  start: () => Promise<{ url: string; stop: () => void }>,
): void {
  describe(`${name}, about the stream of BatchAppend`, () => {
    let connection: Connection;
    let stop: () => void;
    let stream: string;
    let call: BatchCall;
    let answers: Signal<streams.BatchAppendResp>;
    let ended: Signal<unknown>;

    afterEach(async () => {
      call.cancel();
      await connection.close();
      stop();
    });
    leavesNothingOpen();
    beforeEach(async () => {
      const server = await start();
      stop = server.stop;
      connection = connectLog(readConnectionUrl(server.url), defaultTimings, silent).connection;
      stream = `facts-${randomUUID()}`;
      answers = new Signal('the answers');
      ended = new Signal('the end');
      await connection.openBatchAppend((opened) => {
        call = opened;
        opened.on('data', answers.send).on('error', ended.send).on('status', ended.send);
      });
    });

    /** Sends an append of a number of events. @returns its id */
    const send = (
      expected: ExpectedRevision,
      given: {
        to?: string;
        count?: number;
        deadlineMs?: number;
        filling?: string;
        id?: string;
      } = {},
    ): string => {
      const id = randomUUID();
      const events = Array.from({ length: given.count ?? 1 }, () => ({
        id: given.id ?? randomUUID(),
        type: 'Noted',
        data: JSON.stringify({ filling: given.filling ?? '' }),
        metadata: '{}',
      }));
      const append = { stream: given.to ?? stream, events, expected };
      call.write(encodeBatchAppend(append, id, given.deadlineMs ?? DEADLINE_MS));
      return id;
    };
    const answerTo = (id: string) =>
      answers.wait((answer) => answer.getCorrelationId()?.getString() === id);
    const errorOf = async (id: string) =>
      failureOf(answerTo(id).then((answer) => readBatchAnswer(answer, stream)));

    it('executes appends to a stream in order', async () => {
      const ids = Array.from({ length: 20 }, (_, n) => send(n === 0 ? 'none' : n - 1));
      const revisions = await Promise.all(
        ids.map(async (id) => (await answerTo(id)).getSuccess()?.getCurrentRevision()),
      );
      expect(revisions).to.deep.equal(ids.map((_, n) => String(n)));
    });

    it('continues after a failed append', async () => {
      const half = 'x'.repeat(600_000);
      const tooLarge = send('none', { count: 2, filling: half });
      const conflict = send(7);
      const written = send('none');
      expect(await errorOf(tooLarge)).to.be.instanceOf(MaxAppendSizeExceededError);
      expect(await errorOf(conflict)).to.be.instanceOf(WrongExpectedVersionError);
      expect((await answerTo(written)).hasSuccess()).to.equal(true);
      expect(ended.values).to.be.empty;
    });

    it('names the expected and the actual revision of a conflict', async () => {
      await answerTo(send('none', { count: 3 }));
      const behind = await errorOf(send(1));
      expect(behind).to.include({ expectedVersion: 1n, actualVersion: 2n, streamName: stream });
      const taken = await errorOf(send('none'));
      expect(taken).to.include({ expectedVersion: 'no_stream', actualVersion: 2n });
      const ahead = await errorOf(send(4, { to: `${stream}-other` }));
      expect(ahead).to.include({ expectedVersion: 4n, actualVersion: 'no_stream' });
    });

    it('rejects an append whose deadline is not in the future', async () => {
      expect(await errorOf(send('none', { deadlineMs: 0 }))).to.be.instanceOf(
        DeadlineExceededError,
      );
    });

    it('rejects an event whose id is not a UUID', async () => {
      expect(await errorOf(send('none', { id: 'first' }))).to.be.instanceOf(InvalidArgumentError);
    });
  });
}

/** How long a server may take. Milliseconds. */
const DEADLINE_MS = 5_000;

function encoded({ id, type, data }: JSONEventData): EncodedEvent {
  return { id, type, data: JSON.stringify(data), metadata: '{}' };
}

/** All events of a read. */
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
  const standIn = async (): Promise<{ url: string; stop: () => void }> => {
    const server = await EventStoreDbServer.start();
    return { url: server.url, stop: () => server.stop() };
  };
  describeFacts('of the stand-in', standIn, 'batched');
  describeFacts('of the stand-in', standIn, 'single calls');
  describeStreamFacts('of the stand-in', standIn);
  if (realServer !== undefined) {
    const name = 'of the server that the environment names';
    const real = () => Promise.resolve({ url: realServer, stop: () => undefined });
    describeFacts(name, real, 'batched');
    describeFacts(name, real, 'single calls');
    describeStreamFacts(name, real);
  }
});
