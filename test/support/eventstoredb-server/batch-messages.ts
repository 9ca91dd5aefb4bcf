import codes from '@eventstore/db-client/generated/code_pb.js';
import shared from '@eventstore/db-client/generated/shared_pb.js';
import statuses from '@eventstore/db-client/generated/status_pb.js';
import streams from '@eventstore/db-client/generated/streams_pb.js';
import any from 'google-protobuf/google/protobuf/any_pb.js';
import empty from 'google-protobuf/google/protobuf/empty_pb.js';
import { MAX_APPEND_BYTES, type AppendOutcome } from './append-outcome.ts';
import { ANY, NO_STREAM, STREAM_EXISTS, type Expected } from './log.ts';

const { Code } = codes;

/** The response to a batched append, still without the append's id. */
export function batchResponse(
  outcome: Exclude<AppendOutcome, { kind: 'not-leader' | 'lost' }>,
  stream: string,
  expected: Expected,
): streams.BatchAppendResp {
  switch (outcome.kind) {
    case 'written':
      return new streams.BatchAppendResp().setSuccess(successOf(outcome));
    case 'wrong-version':
      return refused('WrongExpectedVersion', Code.ALREADY_EXISTS, wrong(expected, outcome.current));
    case 'deleted': {
      const name = Uint8Array.from(Buffer.from(stream));
      const identifier = new shared.StreamIdentifier().setStreamName(name);
      const deleted = new shared.StreamDeleted().setStreamIdentifier(identifier);
      return refused('StreamDeleted', Code.NOT_FOUND, deleted);
    }
    case 'denied':
      return refused('AccessDenied', Code.PERMISSION_DENIED, new shared.AccessDenied());
    case 'timed-out':
      return appendTimedOut();
    case 'not-ready':
      return notHandled('Server Is Not Ready');
    case 'empty':
      return new streams.BatchAppendResp();
  }
}

export function appendTimedOut(): streams.BatchAppendResp {
  return refused('Timeout', Code.DEADLINE_EXCEEDED, new shared.Timeout());
}

/** @param isOneEvent whether a single event is too large, which only servers from 25.0 on say */
export function appendTooLarge(isOneEvent: boolean): streams.BatchAppendResp {
  const exceeded = new shared.MaximumAppendSizeExceeded().setMaxappendsize(MAX_APPEND_BYTES);
  const name = isOneEvent ? 'MaximumAppendEventSizeExceeded' : 'MaximumAppendSizeExceeded';
  return refused(name, Code.INVALID_ARGUMENT, exceeded);
}

export function badRequest(message: string): streams.BatchAppendResp {
  return refused('BadRequest', Code.INVALID_ARGUMENT, new shared.BadRequest().setMessage(message));
}

/** A server gives such errors no code, and empty details. */
function notHandled(message: string): streams.BatchAppendResp {
  const details = new any.Any();
  details.pack(new empty.Empty().serializeBinary(), 'google.protobuf.Empty');
  const error = new statuses.Status().setMessage(message).setDetails(details);
  return new streams.BatchAppendResp().setError(error);
}

function refused(
  name: string,
  code: codes.Code,
  message: { serializeBinary(): Uint8Array },
): streams.BatchAppendResp {
  const details = new any.Any();
  details.pack(message.serializeBinary(), `event_store.client.${name}`);
  const error = new statuses.Status().setCode(code).setMessage(name).setDetails(details);
  return new streams.BatchAppendResp().setError(error);
}

function wrong(expected: Expected, current: number): shared.WrongExpectedVersion {
  const message = new shared.WrongExpectedVersion();
  if (current === NO_STREAM) message.setCurrentNoStream(new empty.Empty());
  else message.setCurrentStreamRevision(String(current));
  if (expected === NO_STREAM) return message.setExpectedNoStream(new empty.Empty());
  if (expected === ANY) return message.setExpectedAny(new empty.Empty());
  if (expected === STREAM_EXISTS) return message.setExpectedStreamExists(new empty.Empty());
  return message.setExpectedStreamPosition(String(expected));
}

function successOf({
  revision,
  place,
}: Extract<AppendOutcome, { kind: 'written' }>): streams.BatchAppendResp.Success {
  const success = new streams.BatchAppendResp.Success().setCurrentRevision(String(revision));
  if (place === undefined) return success.setNoPosition(new empty.Empty());
  return success.setPosition(
    new shared.AllStreamPosition()
      .setCommitPosition(String(place.commit))
      .setPreparePosition(String(place.prepare)),
  );
}
