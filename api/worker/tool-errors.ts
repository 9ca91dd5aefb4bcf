import { inspect } from 'node:util';

/** Thrown by a tool whose failure another try may heal. Every error except {@link PermanentError} counts as such. */
export class RetryableError extends Error {
  override readonly name = 'RetryableError';
}

/** Thrown by a tool whose failure no other try can heal, such as an address that does not exist. */
export class PermanentError extends Error {
  override readonly name = 'PermanentError';
}

/** Why a job should stop: the `reason` of its signal. */
export class JobInterrupted extends Error {
  override readonly name = 'JobInterrupted';
  /**
   * `canceled`: the job is no longer wanted. `lease_lost`: another worker may have it. `deadline`: its step has timed
   * out. `worker_stopped`: this worker stopped before the job ended.
   */
  readonly why: 'canceled' | 'lease_lost' | 'deadline' | 'worker_stopped';

  constructor(why: JobInterrupted['why'], message: string) {
    super(message);
    this.why = why;
  }
}

/** What a tool threw, as the service records it. */
export function failureOf(thrown: unknown): {
  readonly error: string;
  readonly retryable: boolean;
} {
  return { error: messageOf(thrown), retryable: !(thrown instanceof PermanentError) };
}

/** The message of an error with those of its causes: `fetch failed` alone does not say why. */
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
