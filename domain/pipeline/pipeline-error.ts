/**
 * An error of the pipeline itself: an invalid expression, a missing secret, invalid arguments. The
 * run fails without a retry, which could not help. The message is for the task's owner and names
 * the cause.
 */
export class PipelineError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'PipelineError';
  }
}
