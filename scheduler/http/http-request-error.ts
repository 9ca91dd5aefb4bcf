/** A request without a response, for a reason that the client can explain. */
export class HttpRequestError extends Error {
  /** Whether a repetition may succeed. */
  readonly retryable: boolean;
  /** Names the fault without the host, for messages that must not reveal it. */
  readonly code: string;

  constructor(
    message: string,
    options: { readonly retryable: boolean; readonly code: string; readonly cause?: unknown },
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'HttpRequestError';
    this.retryable = options.retryable;
    this.code = options.code;
  }
}
