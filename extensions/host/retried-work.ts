import { EventStoreError } from '../../domain/event-store.ts';
import { serverProblemOf } from '../../domain/server-problem.ts';
import type { Failures, LogFields } from '../../observability/telemetry.ts';
import { summarizeError, toReadableError } from './extension.ts';

/** Reports how work of an extension goes that is retried after a failure. */
export interface RetriedWork {
  failed(error: unknown, fields?: LogFields): void;
  /** Cheap enough to call after every success. */
  worked(): void;
}

/**
 * Reports retried work of an extension as one cause: one line at first, one a minute with the count, and one when it
 * works again. The stack of the extension's error is logged only at level debug.
 * @param what its name in the status, such as `background task poll`
 * @param count notes each failure elsewhere
 */
export function reportRetries(
  extension: string,
  what: string,
  failures: Failures,
  count: (error: unknown) => void,
): RetriedWork {
  const work = `extension ${extension}: ${what} failed; retrying`;
  return {
    failed(error, fields = {}) {
      count(error);
      failures.failed(work, causeOf(error), { ...fields, extension });
    },
    worked: () => failures.worked(work),
  };
}

/**
 * The error as a cause of failures. An unavailable event log stays recognisable, because it has one line for everything
 * that fails. All other errors are the same cause: foreign names and codes are endless, and each would get lines of its
 * own.
 */
function causeOf(error: unknown): Error {
  const shown = toReadableError(error);
  try {
    if (shown instanceof EventStoreError) {
      return serverProblemOf(shown) ?? new EventStoreError(shown.code, shown.message);
    }
  } catch {
    // An extension may have changed the error so that it cannot be read.
  }
  const plain = new Error(summarizeError(shown));
  if (shown instanceof Error && shown.stack !== undefined) plain.stack = shown.stack;
  return plain;
}
