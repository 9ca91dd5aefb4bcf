/** A request that got no answer for a reason that the client knows, in words for whoever wrote the request. */
export class HttpFailure extends Error {
  /** Whether the same request may get one later. */
  readonly retryable: boolean;
  /** Names the fault without naming the host; it stands in the place of the message where that must not be told. */
  readonly code: string;

  constructor(
    message: string,
    options: { readonly retryable: boolean; readonly code: string; readonly cause?: unknown },
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'HttpFailure';
    this.retryable = options.retryable;
    this.code = options.code;
  }
}
