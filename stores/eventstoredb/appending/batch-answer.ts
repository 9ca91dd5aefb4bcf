import {
  AccessDeniedError,
  DeadlineExceededError,
  InvalidArgumentError,
  MaxAppendSizeExceededError,
  StreamDeletedError,
  UnknownError,
  WrongExpectedVersionError,
  type AppendResult as Answer,
} from '@eventstore/db-client';
import shared from '@eventstore/db-client/generated/shared_pb.js';
import type status from '@eventstore/db-client/generated/status_pb.js';
import type streams from '@eventstore/db-client/generated/streams_pb.js';
import { NotWrittenError } from '../connecting/client-errors.ts';

type Details = NonNullable<ReturnType<status.Status['getDetails']>>;

/** Distinguishes a user without the right from a rejected user. */
const PERMISSION_DENIED = 7;

/** An append that the server did not accept, for which it has no error code. */
const NO_CODE = 0;

/**
 * The errors that a server reports with details, by their type. They become the client's errors of the classic append, so
 * that both are classified alike.
 */
const errors: Readonly<Record<string, (details: Details, stream: string) => Error>> = {
  WrongExpectedVersion: (details, stream) => {
    const wrong = shared.WrongExpectedVersion.deserializeBinary(details.getValue_asU8());
    return WrongExpectedVersionError.fromWrongExpectedVersion(wrong, stream);
  },
  StreamDeleted: (_details, stream) => StreamDeletedError.fromStreamName(stream),
  AccessDenied: () =>
    Object.assign(new AccessDeniedError(undefined, 'Access Denied'), { code: PERMISSION_DENIED }),
  Timeout: () => new DeadlineExceededError(),
  MaximumAppendSizeExceeded: (details) => {
    const exceeded = shared.MaximumAppendSizeExceeded.deserializeBinary(details.getValue_asU8());
    return MaxAppendSizeExceededError.fromMaxAppendSize(exceeded.getMaxappendsize());
  },
  // Sent by servers from 25.0 on, and unknown to the client.
  MaximumAppendEventSizeExceeded: () => MaxAppendSizeExceededError.fromMaxAppendSize(NaN),
  BadRequest: (details) =>
    new InvalidArgumentError(
      shared.BadRequest.deserializeBinary(details.getValue_asU8()).getMessage(),
    ),
};

/**
 * Interprets a server's response to an append.
 * @throws the client's error; {@link NotWrittenError} if the server did not accept the append
 */
export function readBatchAnswer(answer: streams.BatchAppendResp, stream: string): Answer {
  const error = answer.getError();
  if (error !== undefined) throw errorOf(error, stream);
  const success = answer.getSuccess();
  if (success === undefined) throw new UnknownError(undefined, 'the answer has no result');
  const place = success.getPosition();
  return {
    success: true,
    nextExpectedRevision: BigInt(success.getCurrentRevision()),
    ...(place === undefined
      ? {}
      : {
          position: {
            commit: BigInt(place.getCommitPosition()),
            prepare: BigInt(place.getPreparePosition()),
          },
        }),
  };
}

function errorOf(error: status.Status, stream: string): Error {
  const details = error.getDetails();
  const name = details?.getTypeName().split('.').at(-1) ?? '';
  const make = details === undefined ? undefined : errors[name];
  if (make !== undefined && details !== undefined) return make(details, stream);
  // The node is not ready, too busy, or a follower that knows no leader (`NotHandled` in the server).
  if (name === 'Empty' && error.getCode() === NO_CODE)
    return new NotWrittenError(error.getMessage());
  return new UnknownError(undefined, error.getMessage() || name);
}
