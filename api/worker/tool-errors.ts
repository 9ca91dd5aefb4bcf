import { inspect } from 'node:util';

/** Thrown by a tool if a retry may succeed. Every error except {@link PermanentError} is treated like this. */
export class RetryableError extends Error {
  override readonly name = 'RetryableError';
}

/** Thrown by a tool if no retry can succeed, for example because an address does not exist. */
export class PermanentError extends Error {
  override readonly name = 'PermanentError';
}

/** Why a job should stop: the `reason` of its signal. */
export class JobInterruptedError extends Error {
  override readonly name = 'JobInterruptedError';
  /**
   * `canceled`: the job is no longer wanted. `lease_lost`: another worker may have it. `deadline`: its step has timed
   * out. `worker_stopped`: this worker stopped before the job ended.
   */
  readonly why: 'canceled' | 'lease_lost' | 'deadline' | 'worker_stopped';

  constructor(why: JobInterruptedError['why'], message: string) {
    super(message);
    this.why = why;
  }
}

/** The error that a tool threw, in the form that the service records. */
export function failureOf(thrown: unknown): {
  readonly error: string;
  readonly retryable: boolean;
} {
  return { error: messageOf(thrown), retryable: !(thrown instanceof PermanentError) };
}

/** The message of an error with those of its causes, because `fetch failed` alone does not say why. */
export function messageOf(thrown: unknown): string {
  const messages: string[] = [];
  const seen = new Set<unknown>();
  let each = thrown;
  while (each instanceof Error && !seen.has(each)) {
    seen.add(each);
    messages.push(each.message || each.name);
    each = each.cause;
  }
  if (typeof each === 'string') messages.push(each);
  return messages.length === 0 ? `${inspect(each)} was thrown` : messages.join(': ');
}
