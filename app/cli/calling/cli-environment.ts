import type { Clock } from '../../../domain/clock.ts';
import type { Environment } from '../../configuration/setting-readers.ts';

/** Standard output or standard error. */
export interface OutputStream {
  write(text: string): void;
  /** Resolves when the written text has left this process. */
  readonly drained?: () => Promise<void>;
  readonly isTerminal: boolean;
  /** Characters a line; undefined if unknown. */
  readonly columns: number | undefined;
}

/** Everything outside the process that a command uses. Tests replace it. */
export interface CliEnvironment {
  readonly env: Environment;
  readonly out: OutputStream;
  readonly err: OutputStream;
  /** Reads the whole standard input. */
  readonly input: () => Promise<string>;
  /** Asks the person at the terminal for a yes; null if standard input is no terminal. */
  readonly confirm: ((question: string) => Promise<boolean>) | null;
  readonly clock: Clock;
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal;
}
