/**
 * A fault of the pipeline itself: a broken expression, a missing secret, arguments that don't fit. Trying
 * again can't heal it, so a run that meets one fails without a retry. The message is meant for the task's
 * owner and names what is at fault.
 */
export class PipelineFault extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'PipelineFault';
  }
}
