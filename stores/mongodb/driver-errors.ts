import {
  MongoBulkWriteError,
  MongoError,
  MongoNetworkError,
  MongoServerError,
  MongoServerSelectionError,
  MongoTopologyClosedError,
  type TopologyDescription,
} from 'mongodb';

/** The server's code for a duplicate key in a unique index. */
const DUPLICATE_KEY = 11000;

/** Server codes for an expired time limit. */
const TIME_LIMIT_CODES = new Set([
  50, // MaxTimeMSExpired
  202, // NetworkInterfaceExceededTimeLimit: sent by routers, about a shard
  262, // ExceededTimeLimit
]);

/** Server codes for missing transactions, even if `hello` promised them. */
const NO_TRANSACTIONS = new Set([
  20, // IllegalOperation: transaction numbers are only allowed on a replica set
  115, // CommandNotSupported
  238, // NotImplemented
  263, // OperationNotSupportedInTransaction
]);

/** Server codes for a transaction that is too large, and would be again. */
const TRANSACTION_TOO_LARGE = new Set([
  257, // TransactionTooLarge
  388, // TransactionTooLargeForCache: from 6.2 on; 15 % of the cache
]);

/** Server codes for an unknown or unavailable option. */
const UNSUPPORTED_OPTION = new Set([
  2, // BadValue: sent by standalone servers, about `commitQuorum`
  9, // FailedToParse
  72, // InvalidOptions
  115, // CommandNotSupported
  303, // "Feature not supported": sent by compatible servers
  40415, // an unknown field of a command
]);

/** Server codes of errors about users. */
const AUTHENTICATION_FAILED = 18;
const UNAUTHORIZED = 13;
/** Atlas uses this code both for a rejected user and for a missing right. */
const ATLAS_ERROR = 8000;

/** Server codes of errors from members that are not the primary. */
const NOT_PRIMARY = new Set([
  10107, // NotWritablePrimary
  13435, // NotPrimaryNoSecondaryOk
]);

/** Node's codes for a connection that broke during a write without a failed system call. */
const BROKEN_SOCKET_CODES = new Set([
  'EPIPE',
  'ERR_STREAM_DESTROYED',
  'ERR_STREAM_WRITE_AFTER_END',
]);

/** An operation was abandoned because no response arrived in time. */
export class NoResponseError extends Error {
  /** @param limit milliseconds */
  constructor(limit: number) {
    super(`no answer within ${limit} ms`);
    this.name = 'NoAnswerError';
  }
}

/** Whether no server was reached, or its answer was lost: the outcome is unknown. */
export function isUnreachable(error: unknown): boolean {
  return (
    error instanceof MongoNetworkError ||
    error instanceof MongoServerSelectionError ||
    error instanceof NoResponseError ||
    error instanceof MongoTopologyClosedError ||
    isNetworkError(error) ||
    // The driver wraps any error that ends a bulk write; only a server's answer has a code.
    (error instanceof MongoBulkWriteError && error.code === undefined)
  );
}

/** Whether the user could not sign in. */
export function isRejectedUser(error: unknown): boolean {
  if (!(error instanceof MongoServerError)) return false;
  if (error.code === AUTHENTICATION_FAILED) return true;
  return error.code === ATLAS_ERROR && error.hasErrorLabel('HandshakeError');
}

/** Whether the user lacks a right, or there is no user and one is needed. */
export function isForbidden(error: unknown): boolean {
  if (!(error instanceof MongoServerError)) return false;
  return error.code === UNAUTHORIZED || error.code === ATLAS_ERROR;
}

/**
 * Whether an operation failed because the members of a replica set respond but none is the primary.
 * @param topology the driver's knowledge of the members
 */
export function isLeaderless(error: unknown, topology: TopologyDescription | undefined): boolean {
  if (error instanceof MongoServerError) return NOT_PRIMARY.has(Number(error.code));
  return isUnreachable(error) && topology !== undefined && lacksPrimary(topology);
}

function lacksPrimary({ type, servers }: TopologyDescription): boolean {
  if (type !== 'ReplicaSetNoPrimary') return false;
  return [...servers.values()].some((server) => server.type !== 'Unknown');
}

/** The problem if the names of `mongodb+srv` cannot be resolved, so that no host is known. */
export function nameProblemOf(error: unknown): 'name_unknown' | undefined {
  if (!(error instanceof Error) || !('syscall' in error)) return undefined;
  return String(error.syscall).startsWith('query') ? 'name_unknown' : undefined;
}

/**
 * A driver error in one sentence.
 * @param hosts the server's addresses; never the connection string, which may hold a password
 */
export function describeError(error: Error, operation: string, hosts: string): string {
  const detail = error.message === '' ? error.name : error.message;
  return isUnreachable(error)
    ? `MongoDB at ${hosts} does not answer (${operation}): ${detail}`
    : `MongoDB at ${hosts} refused (${operation}): ${detail}`;
}

/** Whether a single write met an existing key. */
export function isDuplicateKey(error: unknown): boolean {
  return error instanceof MongoServerError && error.code === DUPLICATE_KEY;
}

/** Indexes of the statements of an unordered bulk write that met an existing key; null after any other failure. */
export function duplicateStatementsOf(error: unknown): ReadonlySet<number> | null {
  if (!(error instanceof MongoBulkWriteError)) return null;
  if (error.result.getWriteConcernError() !== undefined) return null;
  const faults = Array.isArray(error.writeErrors) ? error.writeErrors : [error.writeErrors];
  if (faults.length === 0 || faults.some((fault) => fault.code !== DUPLICATE_KEY)) return null;
  return new Set(faults.map((fault) => fault.index));
}

/**
 * Whether a transaction may begin again: it lost against another one, or lost its connection. False if no server is
 * reachable, as each attempt would wait anew.
 */
export function isTransientTransactionError(error: unknown): boolean {
  return (
    error instanceof MongoError &&
    !(error instanceof MongoServerSelectionError) &&
    error.hasErrorLabel('TransientTransactionError')
  );
}

/** Whether the server lacks transactions after all. */
export function isTransactionUnsupported(error: unknown): boolean {
  if (!(error instanceof MongoServerError)) return false;
  // The driver replaces the server's error for code 20 with its own error.
  const original: unknown = error['originalError'];
  const { code } = original instanceof MongoServerError ? original : error;
  return NO_TRANSACTIONS.has(Number(code));
}

/** Whether a transaction was too large for the server; its writes may still succeed one by one. */
export function isTransactionTooLarge(error: unknown): boolean {
  return error instanceof MongoServerError && TRANSACTION_TOO_LARGE.has(Number(error.code));
}

/** Whether the server gave up after its time limit. */
export function isTimeLimitError(error: unknown): boolean {
  return error instanceof MongoServerError && TIME_LIMIT_CODES.has(Number(error.code));
}

/** Whether the server refused an option. */
export function isUnsupportedOption(error: unknown): boolean {
  return error instanceof MongoServerError && UNSUPPORTED_OPTION.has(Number(error.code));
}

/** Whether the error comes from the database or the network. Anything else is a bug. */
export function isDriverError(error: unknown): error is Error {
  return error instanceof MongoError || error instanceof NoResponseError || isNetworkError(error);
}

/**
 * Whether this is Node's own network error. The driver (7.8) lets these through when a connection breaks during a large
 * command (`Connection.writeCommand`), and when the names of `mongodb+srv` cannot be resolved.
 */
function isNetworkError(error: unknown): error is Error {
  if (!(error instanceof Error) || !('code' in error)) return false;
  return 'syscall' in error || BROKEN_SOCKET_CODES.has(String(error.code));
}
