import { ErrorType, WrongExpectedVersionError, isCommandError } from '@eventstore/db-client';
import {
  EventStoreError,
  type EventStoreErrorCode,
  type ExpectedRevision,
} from '../../../domain/event-store.ts';

/** gRPC's status numbers, as far as they matter here. */
const grpc = {
  INVALID_ARGUMENT: 3,
  PERMISSION_DENIED: 7,
  FAILED_PRECONDITION: 9,
  UNIMPLEMENTED: 12,
  UNAUTHENTICATED: 16,
} as const;

/**
 * What a failed call means.
 *
 * - `conflict`, `deleted`, `too-large`: the server's answer; nothing was written
 * - `not-found`: the stream has no events
 * - `refused`: the server will not do it, now or later: access, arguments
 * - `elsewhere`: asked a follower; the client goes to the leader by itself next time
 * - `unclear`: no answer: down, cancelled, too late, or a failure inside the server. A write may have
 *   happened
 */
export type Failure =
  'conflict' | 'deleted' | 'too-large' | 'not-found' | 'refused' | 'elsewhere' | 'unclear';

const byType: Readonly<Partial<Record<ErrorType, Failure>>> = {
  [ErrorType.WRONG_EXPECTED_VERSION]: 'conflict',
  [ErrorType.STREAM_DELETED]: 'deleted',
  [ErrorType.MAXIMUM_APPEND_SIZE_EXCEEDED]: 'too-large',
  [ErrorType.STREAM_NOT_FOUND]: 'not-found',
  [ErrorType.NO_STREAM]: 'not-found',
  [ErrorType.ACCESS_DENIED]: 'refused',
  [ErrorType.INVALID_ARGUMENT]: 'refused',
  [ErrorType.NOT_LEADER]: 'elsewhere',
};

const byCode: Readonly<Record<number, Failure>> = {
  [grpc.INVALID_ARGUMENT]: 'refused',
  [grpc.PERMISSION_DENIED]: 'refused',
  [grpc.FAILED_PRECONDITION]: 'refused',
  [grpc.UNIMPLEMENTED]: 'refused',
  [grpc.UNAUTHENTICATED]: 'refused',
};

/** Names that servers of 25.0 and later give to errors, and that the client does not know. */
const byName: Readonly<Record<string, Failure>> = {
  'maximum-append-event-size-exceeded': 'too-large',
};

/** Reads a failure from an error of the client, or of gRPC itself, which has a number and no type. */
export function failureOf(error: unknown): Failure {
  if (!(error instanceof Error)) return 'unclear';
  const typed = isCommandError(error)
    ? (byType[error.type] ?? byName[String(error._raw?.metadata?.get('exception')[0])])
    : undefined;
  return typed ?? byCode[statusOf(error) ?? -1] ?? 'unclear';
}

/** Where the stream really was; `WrongExpectedVersionError` has an empty message and these fields. */
export function actualRevisionOf(error: unknown): number | 'none' | undefined {
  if (!(error instanceof WrongExpectedVersionError)) return undefined;
  const actual = error.actualVersion;
  return typeof actual === 'bigint' && actual >= 0n ? Number(actual) : 'none';
}

/** The error of the port for a lost race. */
export function conflict(
  stream: string,
  expected: ExpectedRevision,
  actual: number | 'none' | undefined,
  cause: unknown,
): EventStoreError {
  const found = actual === undefined ? 'elsewhere' : actual === 'none' ? 'empty' : `at ${actual}`;
  return new EventStoreError(
    'CONFLICT',
    `Stream ${stream} was expected ${expected === 'none' ? 'empty' : `at ${expected}`} and is ${found}`,
    { stream, expected, cause, ...(actual === undefined ? {} : { actual }) },
  );
}

const codes: Readonly<Record<Failure, EventStoreErrorCode>> = {
  conflict: 'CONFLICT',
  deleted: 'STREAM_DELETED',
  'too-large': 'TOO_LARGE',
  'not-found': 'UNAVAILABLE',
  refused: 'UNAVAILABLE',
  elsewhere: 'UNAVAILABLE',
  unclear: 'UNAVAILABLE',
};

/**
 * The error of the port for a failed call that has written nothing.
 * @param doing what was tried, for the message: "read stream task-1"
 */
export function faultOf(error: unknown, doing: string, stream?: string): EventStoreError {
  if (error instanceof EventStoreError) return error;
  return new EventStoreError(
    codes[failureOf(error)],
    `EventStoreDB could not ${doing}: ${wordsOf(error)}`,
    { cause: error, ...(stream === undefined ? {} : { stream }) },
  );
}

/** An error in a few words: its kind in the client's vocabulary, and its message where it has one. */
export function wordsOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const kind = isCommandError(error) ? error.type : error.name;
  return error.message === '' ? kind : `${kind} (${error.message})`;
}

function statusOf(error: Error): number | undefined {
  return 'code' in error && typeof error.code === 'number' ? error.code : undefined;
}
