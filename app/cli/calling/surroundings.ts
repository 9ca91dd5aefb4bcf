import type { Clock } from '../../../domain/clock.ts';
import type { Environment } from '../../configuration/setting-readers.ts';

/** One of the two streams that a command writes to. */
export interface Screen {
  write(text: string): void;
  /** Resolves when what was written has gone on, where it would else gather in memory. */
  readonly drained?: () => Promise<void>;
  /** A person looks at it, and not a file or a pipe. */
  readonly isTerminal: boolean;
  /** Characters to a line; undefined where nobody knows. */
  readonly columns: number | undefined;
}

/** All that a command line sees of the world. A test gives it another one. */
export interface Surroundings {
  readonly env: Environment;
  readonly out: Screen;
  readonly err: Screen;
  /** The whole of the standard input, as text. */
  readonly input: () => Promise<string>;
  readonly clock: Clock;
  /** Aborted by Ctrl-C: what follows something ends in order. */
  readonly signal: AbortSignal;
}
