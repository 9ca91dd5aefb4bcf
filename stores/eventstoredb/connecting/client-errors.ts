import { ErrorType, WrongExpectedVersionError, isCommandError } from '@eventstore/db-client';
import {
  EventStoreError,
  type EventStoreErrorCode,
  type ExpectedRevision,
} from '../../../domain/event-store.ts';

/** The gRPC status numbers used here. */
const grpc = {
  CANCELLED: 1,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  PERMISSION_DENIED: 7,
  FAILED_PRECONDITION: 9,
  UNIMPLEMENTED: 12,
  UNAVAILABLE: 14,
  UNAUTHENTICATED: 16,
} as const;

/**
 * The meaning of a failed call.
 *
 * - `conflict`, `deleted`, `too-large`: the server's answer; nothing was written
 * - `not-found`: the stream has no events
 * - `refused`: the server will never accept it, because of access or arguments
 * - `elsewhere`: the node wrote nothing, because it is a follower, is not ready, or never got the call. The next
 *   attempt may reach a node that writes
 * - `unclear`: the server is down, or the call was cancelled, late, or failed inside the server. A write may have
 *   happened
 */
export type CallFailure =
  | 'conflict'
  | 'deleted'
  | 'too-large'
  | 'not-found'
  | 'refused'
  | 'elsewhere'
  | 'unclear';

/** An append that was not sent, or that the server did not accept. */
export class NotWrittenError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'NotWrittenError';
  }
}

const byType: Readonly<Partial<Record<ErrorType, CallFailure>>> = {
  [ErrorType.WRONG_EXPECTED_VERSION]: 'conflict',
  [ErrorType.STREAM_DELETED]: 'deleted',
  [ErrorType.MAXIMUM_APPEND_SIZE_EXCEEDED]: 'too-large',
  [ErrorType.STREAM_NOT_FOUND]: 'not-found',
  [ErrorType.NO_STREAM]: 'not-found',
  [ErrorType.ACCESS_DENIED]: 'refused',
  [ErrorType.INVALID_ARGUMENT]: 'refused',
  [ErrorType.NOT_LEADER]: 'elsewhere',
};

const byCode: Readonly<Record<number, CallFailure>> = {
  [grpc.INVALID_ARGUMENT]: 'refused',
  [grpc.PERMISSION_DENIED]: 'refused',
  [grpc.FAILED_PRECONDITION]: 'refused',
  [grpc.UNIMPLEMENTED]: 'refused',
  [grpc.UNAUTHENTICATED]: 'refused',
};

/** Error names of servers from 25.0 on that the client does not know. */
const byName: Readonly<Record<string, CallFailure>> = {
  'maximum-append-event-size-exceeded': 'too-large',
};

/** Classifies an error of the client, or of gRPC itself, which has a number and no type. */
export function classifyError(error: unknown): CallFailure {
  if (!(error instanceof Error)) return 'unclear';
  if (error instanceof NotWrittenError) return 'elsewhere';
  const typed = isCommandError(error)
    ? (byType[error.type] ?? byName[String(error._raw?.metadata?.get('exception')[0])])
    : undefined;
  return typed ?? byCode[statusOf(error) ?? -1] ?? 'unclear';
}

/** Whether the server rejected the user or the user lacks a right; null for neither. */
export function rejectionOf(error: unknown): 'user' | 'right' | null {
  const status = error instanceof Error ? statusOf(error) : undefined;
  if (status === grpc.UNAUTHENTICATED) return 'user';
  return status === grpc.PERMISSION_DENIED ? 'right' : null;
}

/** Whether the server could not be reached, did not respond in time, or says that it is not ready. */
export function isConnectionFailure(error: unknown): boolean {
  const status = error instanceof Error ? statusOf(error) : undefined;
  // Errors without a status come from the client's search for a node, and from the adapter's timeouts.
  return status === undefined || lostCalls.has(status);
}

const lostCalls: ReadonlySet<number> = new Set([
  grpc.CANCELLED,
  grpc.DEADLINE_EXCEEDED,
  grpc.UNAVAILABLE,
]);

/** The stream's actual revision; `WrongExpectedVersionError` has an empty message and these fields. */
export function actualRevisionOf(error: unknown): number | 'none' | undefined {
  if (!(error instanceof WrongExpectedVersionError)) return undefined;
  const actual = error.actualVersion;
  return typeof actual === 'bigint' && actual >= 0n ? Number(actual) : 'none';
}

/** The port's error for a lost race. */
export function conflictError(
  stream: string,
  expected: ExpectedRevision,
  actual: number | 'none' | undefined,
  cause: unknown,
): EventStoreError {
  const found = actual === undefined ? 'elsewhere' : actual === 'none' ? 'empty' : `at ${actual}`;
  return new EventStoreError(
    'CONFLICT',
    `stream ${stream} was expected ${expected === 'none' ? 'empty' : `at ${expected}`} and is ${found}`,
    { stream, expected, cause, ...(actual === undefined ? {} : { actual }) },
  );
}

const codes: Readonly<Record<CallFailure, EventStoreErrorCode>> = {
  conflict: 'CONFLICT',
  deleted: 'STREAM_DELETED',
  'too-large': 'TOO_LARGE',
  'not-found': 'UNAVAILABLE',
  refused: 'UNAVAILABLE',
  elsewhere: 'UNAVAILABLE',
  unclear: 'UNAVAILABLE',
};

/** The port's error for a failed call that wrote nothing. @param doing for the message: "read stream task-1" */
export function toEventStoreError(error: unknown, doing: string, stream?: string): EventStoreError {
  if (error instanceof EventStoreError) return error;
  return new EventStoreError(
    codes[classifyError(error)],
    `EventStoreDB could not ${doing}: ${describeError(error)}`,
    { cause: error, ...(stream === undefined ? {} : { stream }) },
  );
}

/** An error's kind in the client's vocabulary, with its message where it has one. */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const kind = isCommandError(error) ? error.type : error.name;
  return error.message === '' ? kind : `${kind} (${error.message})`;
}

/** Whether the server lacks a method. */
export function isUnimplemented(error: unknown): boolean {
  return error instanceof Error && statusOf(error) === grpc.UNIMPLEMENTED;
}

/** Whether the server rejected a call before it read any of its requests. */
export function isRefusedCall(error: Error): boolean {
  const status = statusOf(error);
  return (
    status === grpc.UNIMPLEMENTED ||
    status === grpc.UNAUTHENTICATED ||
    status === grpc.PERMISSION_DENIED
  );
}

function statusOf(error: Error): number | undefined {
  return 'code' in error && typeof error.code === 'number' ? error.code : undefined;
}
