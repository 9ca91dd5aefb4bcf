/** Exit codes of `svc`. Scripts rely on them; `docs/reference/command-line.md` lists them. */
export const exitCodes = {
  ok: 0,
  /** The command, or the run it waited for, failed. */
  failure: 1,
  /** Wrong use of the command line, or a value that the service rejects (400, 413, 415). */
  usage: 2,
  /** The task, run or agent does not exist (404). */
  notFound: 3,
  /** No valid token, or a missing scope (401, 403). */
  notAuthorized: 4,
  /** Wrong state, or changed meanwhile (409, 412). */
  conflict: 5,
  /** The service or store is unavailable (429, 503). */
  unavailable: 6,
} as const;

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

/** Ends a command. The message says what is wrong and what to do about it. */
export class CommandError extends Error {
  readonly exitCode: ExitCode;

  constructor(exitCode: ExitCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = new.target.name;
    this.exitCode = exitCode;
  }
}

/** Ends a command that Ctrl-C interrupted before it was done. */
export class InterruptedError extends CommandError {
  constructor(cause: unknown, message = 'interrupted; the work is not done') {
    super(exitCodes.failure, message, cause);
  }
}

/** Ends an export whose rows are incomplete. */
export class IncompleteExportError extends CommandError {
  constructor(cause?: unknown) {
    const advice = 'try again, or continue after the last whole row with --cursor';
    super(exitCodes.unavailable, `the export ended too soon; ${advice}`, cause);
  }
}

/** Ends a command that follows something. Ctrl-C is its normal end. */
export class FollowEndedError extends CommandError {
  constructor(cause: unknown) {
    super(exitCodes.ok, '', cause);
  }
}

/**
 * Ends a command whose output can't be written. A reader that closed the pipe (`svc … | head`) needs no more output, so
 * this is not a failure and has no message.
 */
export class OutputLostError extends CommandError {
  constructor(cause: NodeJS.ErrnoException) {
    const isClosedPipe = cause.code === 'EPIPE';
    const message = isClosedPipe ? '' : `could not write the output: ${cause.message}`;
    super(isClosedPipe ? exitCodes.ok : exitCodes.failure, message, cause);
  }
}

/** A usage error, which the caller can correct. */
export const usageError = (message: string): CommandError =>
  new CommandError(exitCodes.usage, message);

/** The message of anything that was thrown. */
export const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);
