import type { Doc } from './wire.ts';

/** A failed command, in the server's words. */
export class CommandError extends Error {
  readonly code: number;
  readonly codeName: string;
  readonly labels: readonly string[];
  /** Further fields of the response, or of the write error. */
  readonly details: Doc;

  constructor(
    code: number,
    codeName: string,
    message: string,
    more: { readonly labels?: readonly string[]; readonly details?: Doc } = {},
  ) {
    super(message);
    this.name = 'CommandError';
    this.code = code;
    this.codeName = codeName;
    this.labels = more.labels ?? [];
    this.details = more.details ?? {};
  }

  /** The whole command's response. */
  reply(): Doc {
    return {
      ok: 0,
      errmsg: this.message,
      code: this.code,
      codeName: this.codeName,
      ...this.details,
      ...(this.labels.length > 0 && { errorLabels: [...this.labels] }),
    };
  }

  /** One entry of `writeErrors`. */
  writeError(index: number): Doc {
    return { index, code: this.code, errmsg: this.message, ...this.details };
  }
}

/** E11000, in the words of MongoDB 4.4 and later. */
export function duplicateKey(
  namespace: string,
  index: string,
  pattern: Doc,
  value: Doc,
): CommandError {
  const shown = Object.entries(value).map(([field, held]) => `${field}: ${JSON.stringify(held)}`);
  return new CommandError(
    11000,
    'DuplicateKey',
    `E11000 duplicate key error collection: ${namespace} index: ${index} dup key: { ${shown.join(', ')} }`,
    { details: { keyPattern: pattern, keyValue: value } },
  );
}

/** Two transactions changed the same document; the later one must restart. */
export function writeConflict(): CommandError {
  return new CommandError(
    112,
    'WriteConflict',
    'Caused by :: Write conflict during plan execution and yielding is disabled. :: Please retry your operation or multi-document transaction.',
    { labels: ['TransientTransactionError'] },
  );
}

/** The command exceeded its `maxTimeMS`. */
export function overTime(): CommandError {
  return new CommandError(50, 'MaxTimeMSExpired', 'operation exceeded time limit');
}

/**
 * Not a response: the write meets a document held by a transaction, and runs once the transaction
 * has ended.
 */
export class DocumentLockedError extends Error {
  readonly until: Promise<void>;

  constructor(until: Promise<void>) {
    super('a transaction has the document');
    this.until = until;
  }
}

/**
 * A transaction that changes more than the cache can hold. The error has no label for a retry,
 * because a retry would always fail.
 */
export function tooLargeForCache(): CommandError {
  return new CommandError(
    388,
    'TransactionTooLargeForCache',
    'transaction is too large and will not fit in the storage engine cache',
  );
}

/** The transaction was aborted already, or never started here. */
export function noSuchTransaction(): CommandError {
  return new CommandError(
    251,
    'NoSuchTransaction',
    'Given transaction number does not match any in-progress transactions.',
    { labels: ['TransientTransactionError'] },
  );
}
