import {
  MongoBulkWriteError,
  MongoError,
  MongoNetworkError,
  MongoServerError,
  MongoServerSelectionError,
  MongoTopologyClosedError,
} from 'mongodb';

/** What the driver's errors mean to an adapter. */

/** The server's code for a key that a unique index holds already. */
const DUPLICATE_KEY = 11000;

/** Codes by which servers say that the time they were given is over. */
const OVER_TIME = new Set([
  50, // MaxTimeMSExpired
  202, // NetworkInterfaceExceededTimeLimit: routers, of a shard
  262, // ExceededTimeLimit
]);

/** Codes by which servers say that they have no transactions, whatever their `hello` promised. */
const NO_TRANSACTIONS = new Set([
  20, // IllegalOperation: transaction numbers are only allowed on a replica set
  115, // CommandNotSupported
  238, // NotImplemented
  263, // OperationNotSupportedInTransaction
]);

/** Codes by which servers say that a transaction is too large for them, and would be when it is tried again. */
const TOO_LARGE_AT_ONCE = new Set([
  257, // TransactionTooLarge
  388, // TransactionTooLargeForCache: from 6.2 on; 15 % of the cache, which may be 256 MB in a small container
]);

/** Codes by which servers refuse an option that they don't know, or don't have. */
const OPTION_REFUSED = new Set([
  2, // BadValue: standalone servers, of `commitQuorum`
  9, // FailedToParse
  72, // InvalidOptions
  115, // CommandNotSupported
  303, // "Feature not supported", of compatible servers
  40415, // an unknown field of a command
]);

/** Codes of Node for a connection that broke while something was being written to it, where no call of the system failed. */
const BROKEN_SOCKET = new Set(['EPIPE', 'ERR_STREAM_DESTROYED', 'ERR_STREAM_WRITE_AFTER_END']);

/** An operation that was given up, as no answer came in time. */
export class NoAnswer extends Error {
  /** @param limit milliseconds */
  constructor(limit: number) {
    super(`no answer within ${limit} ms`);
    this.name = 'NoAnswer';
  }
}

/** Whether no server was reached, or its answer was lost: what it did is unknown. */
export function isUnreachable(error: unknown): boolean {
  return (
    error instanceof MongoNetworkError ||
    error instanceof MongoServerSelectionError ||
    error instanceof NoAnswer ||
    error instanceof MongoTopologyClosedError ||
    isOfNetwork(error) ||
    // The driver wraps whatever ends a bulk write; only what the server itself said has a code.
    (error instanceof MongoBulkWriteError && error.code === undefined)
  );
}

/**
 * Such an error in one sentence.
 * @param hosts where the server should be; never the connection string, which may hold a password
 */
export function explain(error: Error, operation: string, hosts: string): string {
  const said = error.message === '' ? error.name : error.message;
  return isUnreachable(error)
    ? `MongoDB at ${hosts} does not answer (${operation}): ${said}`
    : `MongoDB at ${hosts} refused (${operation}): ${said}`;
}

/** Whether a single write met a key that is taken. */
export function isDuplicateKey(error: unknown): boolean {
  return error instanceof MongoServerError && error.code === DUPLICATE_KEY;
}

/**
 * Which statements of an unordered bulk write met a taken key, when nothing else went wrong.
 * @returns their places in the bulk; null when there was any other fault
 */
export function duplicatesOf(error: unknown): ReadonlySet<number> | null {
  if (!(error instanceof MongoBulkWriteError)) return null;
  if (error.result.getWriteConcernError() !== undefined) return null;
  const faults = Array.isArray(error.writeErrors) ? error.writeErrors : [error.writeErrors];
  if (faults.length === 0 || faults.some((fault) => fault.code !== DUPLICATE_KEY)) return null;
  return new Set(faults.map((fault) => fault.index));
}

/**
 * Whether a transaction may simply begin again: it lost against another, or its connection. Not when no
 * server is to be found, for which each attempt would wait anew.
 */
export function isWorthAnotherTransaction(error: unknown): boolean {
  return (
    error instanceof MongoError &&
    !(error instanceof MongoServerSelectionError) &&
    error.hasErrorLabel('TransientTransactionError')
  );
}

/** Whether the server can't do transactions after all. */
export function isWithoutTransactions(error: unknown): boolean {
  if (!(error instanceof MongoServerError)) return false;
  // The driver has words of its own for code 20, and puts them in place of the server's error.
  const original: unknown = error['originalError'];
  const { code } = original instanceof MongoServerError ? original : error;
  return NO_TRANSACTIONS.has(Number(code));
}

/** Whether a transaction was too large for the server: what it wrote may still be written piece by piece. */
export function isTooLargeAtOnce(error: unknown): boolean {
  return error instanceof MongoServerError && TOO_LARGE_AT_ONCE.has(Number(error.code));
}

/** Whether the server gave up what was not done within the time that it was given. */
export function isOverTime(error: unknown): boolean {
  return error instanceof MongoServerError && OVER_TIME.has(Number(error.code));
}

/** Whether the server refused what it was asked for because of an option. */
export function isOptionRefused(error: unknown): boolean {
  return error instanceof MongoServerError && OPTION_REFUSED.has(Number(error.code));
}

/** Whether it comes from the database or the way to it; everything else is a fault of ours. */
export function isDatabaseFault(error: unknown): error is Error {
  return error instanceof MongoError || error instanceof NoAnswer || isOfNetwork(error);
}

/**
 * Whether it is Node's own error about the network, which the driver (7.8) lets through in two places: where a
 * connection breaks while a large command is on its way (`Connection.writeCommand`), and where the names of
 * `mongodb+srv` can't be looked up.
 */
function isOfNetwork(error: unknown): error is Error {
  if (!(error instanceof Error) || !('code' in error)) return false;
  return 'syscall' in error || BROKEN_SOCKET.has(String(error.code));
}
