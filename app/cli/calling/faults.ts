/** What the process ends with. Scripts rely on these numbers; `docs/reference/command-line.md` lists them. */
export const exitCodes = {
  ok: 0,
  /** What was asked for did not work, or what was waited for failed. */
  failure: 1,
  /** Wrong use of the command line, or a value that the service does not take (400). */
  usage: 2,
  /** The task, run or agent does not exist (404). */
  notFound: 3,
  /** No valid token, or too few scopes (401, 403). */
  notAuthorized: 4,
  /** It is not in a state for that, or has changed meanwhile (409, 412). */
  conflict: 5,
  /** No service answers, or it can't at present (429, 503). */
  unavailable: 6,
} as const;

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];

/** Ends a command. The message is for the person at the terminal: what is wrong, and what to do about it. */
export class CommandFault extends Error {
  readonly exitCode: ExitCode;

  constructor(exitCode: ExitCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'CommandFault';
    this.exitCode = exitCode;
  }
}

/** Ends a command that Ctrl-C has broken off before it had done what it was to do, so that it does not pass for done. */
export class BrokenOff extends CommandFault {
  constructor(cause: unknown, message = 'it was broken off; what was begun is not done') {
    super(exitCodes.failure, message, cause);
    this.name = 'BrokenOff';
  }
}

/** Ends an export whose rows did not come whole: what came must not pass for all of them. */
export class BrokenExport extends CommandFault {
  constructor(cause?: unknown) {
    const advice = 'try again, or go on behind the last whole row with --cursor';
    super(exitCodes.unavailable, `the export broke off before its end: ${advice}`, cause);
    this.name = 'BrokenExport';
  }
}

/** Ends a command that follows something: Ctrl-C is how one is done with that. */
export class FollowingEnded extends CommandFault {
  constructor(cause: unknown) {
    super(exitCodes.ok, '', cause);
    this.name = 'FollowingEnded';
  }
}

/**
 * Ends a command whose answer can't be written any more. Where the reader has closed the pipe (`svc … | head`), it has
 * read enough: then it is no fault, and there is nothing to say.
 */
export class OutputLost extends CommandFault {
  constructor(cause: NodeJS.ErrnoException) {
    const isEnough = cause.code === 'EPIPE';
    const message = isEnough ? '' : `the answer can't be written: ${cause.message}`;
    super(isEnough ? exitCodes.ok : exitCodes.failure, message, cause);
    this.name = 'OutputLost';
  }
}

/** A fault of use: the caller can do it right by writing something else. */
export function usageFault(message: string): CommandFault {
  return new CommandFault(exitCodes.usage, message);
}
