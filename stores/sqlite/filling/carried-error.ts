import { ReadModelError, type ReadModelErrorCode } from '../../../projections/read-model.ts';
import { IncompatibleDatabaseError } from '../database.ts';

/** An error on its way from one thread to another: by itself it would lose its class, and what the driver says in it. */
export interface CarriedError {
  readonly message: string;
  /** Of a `ReadModelError`. */
  readonly port?: ReadModelErrorCode;
  /** The file is a newer release's. */
  readonly isIncompatible: boolean;
  /** What the driver and the file system say beside the message. */
  readonly said: Readonly<Record<string, string | number>>;
}

const SAID = ['errcode', 'code', 'syscall', 'path'] as const;

export function carry(error: unknown): CarriedError {
  if (!(error instanceof Error)) return { message: String(error), isIncompatible: false, said: {} };
  const said: Record<string, string | number> = {};
  for (const name of SAID) {
    const value: unknown = name in error ? Reflect.get(error, name) : undefined;
    if (typeof value === 'string' || typeof value === 'number') said[name] = value;
  }
  return {
    message: error.message,
    ...(error instanceof ReadModelError ? { port: error.code } : {}),
    isIncompatible: error instanceof IncompatibleDatabaseError,
    said,
  };
}

/** The error as it was, as far as anybody looks at it. */
export function carried({ message, port, isIncompatible, said }: CarriedError): Error {
  if (port !== undefined) return new ReadModelError(port, message);
  if (isIncompatible) return new IncompatibleDatabaseError(message);
  return Object.assign(new Error(message), said);
}
