import shared from '@eventstore/db-client/generated/shared_pb.js';
import streams from '@eventstore/db-client/generated/streams_pb.js';
import { Metadata, status, type ServiceError } from '@grpc/grpc-js';
import {
  ANY,
  FOREVER,
  FOREVER_TEXT,
  NO_STREAM,
  STREAM_EXISTS,
  type Expected,
  type Place,
  type StoredEvent,
} from './log.ts';

/** "No position", as a server writes it: -1 as an unsigned number. */
const UNKNOWN = '18446744073709551615';

/** .NET counts time in units of 100 ns. */
const TICKS_PER_MILLISECOND = 10_000n;

/** An event in the response to a read or a subscription. */
export function eventMessage(event: StoredEvent, withPosition: boolean): streams.ReadResp {
  const recorded = new streams.ReadResp.ReadEvent.RecordedEvent()
    .setId(new shared.UUID().setString(event.id))
    .setStreamIdentifier(streamIdentifier(event.stream))
    .setStreamRevision(revisionText(event.revision))
    .setCommitPosition(withPosition ? String(event.commit) : UNKNOWN)
    .setPreparePosition(withPosition ? String(event.prepare) : UNKNOWN)
    .setData(event.data)
    .setCustomMetadata(event.metadata);
  recorded
    .getMetadataMap()
    .set('type', event.type)
    .set('content-type', event.contentType)
    .set('created', String(BigInt(event.created) * TICKS_PER_MILLISECOND));
  const read = new streams.ReadResp.ReadEvent().setEvent(recorded);
  if (withPosition) read.setCommitPosition(String(event.commit));
  else read.setNoPosition(new shared.Empty());
  return new streams.ReadResp().setEvent(read);
}

/** The largest value of a server is not exactly a JavaScript number. */
function revisionText(revision: number): string {
  return revision === FOREVER ? FOREVER_TEXT : String(revision);
}

export function confirmationMessage(id: string): streams.ReadResp {
  return new streams.ReadResp().setConfirmation(
    new streams.ReadResp.SubscriptionConfirmation().setSubscriptionId(id),
  );
}

export function streamNotFoundMessage(stream: string): streams.ReadResp {
  return new streams.ReadResp().setStreamNotFound(
    new streams.ReadResp.StreamNotFound().setStreamIdentifier(streamIdentifier(stream)),
  );
}

/** The response to an append that was written, now or before. */
export function successMessage(revision: number, place: Place | undefined): streams.AppendResp {
  const success = new streams.AppendResp.Success().setCurrentRevision(String(revision));
  if (place === undefined) success.setNoPosition(new shared.Empty());
  else {
    success.setPosition(
      new streams.AppendResp.Position()
        .setCommitPosition(String(place.commit))
        .setPreparePosition(String(place.prepare)),
    );
  }
  return new streams.AppendResp().setSuccess(success);
}

/** The response to an append whose expectation failed. */
export function wrongVersionMessage(expected: Expected, current: number): streams.AppendResp {
  const wrong = new streams.AppendResp.WrongExpectedVersion();
  if (current === NO_STREAM) wrong.setCurrentNoStream(new shared.Empty());
  else wrong.setCurrentRevision(String(current));
  if (expected === NO_STREAM) wrong.setExpectedNoStream(new shared.Empty());
  else if (expected === ANY) wrong.setExpectedAny(new shared.Empty());
  else if (expected === STREAM_EXISTS) wrong.setExpectedStreamExists(new shared.Empty());
  else wrong.setExpectedRevision(String(expected));
  return new streams.AppendResp().setWrongExpectedVersion(wrong);
}

export function expectedOf(options: streams.AppendReq.Options): Expected {
  if (options.hasNoStream()) return NO_STREAM;
  if (options.hasStreamExists()) return STREAM_EXISTS;
  return options.hasRevision() ? Number(options.getRevision()) : ANY;
}

export function streamNameOf(identifier: shared.StreamIdentifier | undefined): string {
  return Buffer.from(identifier?.getStreamName_asU8() ?? []).toString('utf8');
}

/**
 * An error as a server sends it: a status, and for its own kinds of errors a name in the trailers.
 */
export function failure(
  code: status,
  details: string,
  trailers: Readonly<Record<string, string>> = {},
): ServiceError {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(trailers)) metadata.set(name, value);
  return Object.assign(new Error(details), { code, details, metadata });
}

export const unavailable = (): ServiceError => failure(status.UNAVAILABLE, 'Server is not ready');

export const consumerTooSlow = (): ServiceError =>
  failure(
    status.ABORTED,
    'Operation timed out: Consumer too slow to handle event while live. Client resubscription required.',
  );

export function notLeader(leaderPort: number): ServiceError {
  return failure(status.NOT_FOUND, 'Leader info available', {
    exception: 'not-leader',
    'leader-endpoint-host': '127.0.0.1',
    'leader-endpoint-port': String(leaderPort),
  });
}

export function streamDeleted(stream: string): ServiceError {
  return failure(status.FAILED_PRECONDITION, `Event stream '${stream}' is deleted.`, {
    exception: 'stream-deleted',
    'stream-name': stream,
  });
}

function streamIdentifier(stream: string): shared.StreamIdentifier {
  return new shared.StreamIdentifier().setStreamName(Uint8Array.from(Buffer.from(stream)));
}
