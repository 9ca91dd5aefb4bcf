import type { Readable } from 'node:stream';
import { SystemClock } from '../../../app/clock.ts';
import { readInput } from '../../../app/cli/calling/read-input.ts';
import { createCommandLine } from '../../../app/cli/commands.ts';
import type { Environment } from '../../../app/configuration/setting-readers.ts';
import type { Clock } from '../../../domain/clock.ts';
import { Signal } from '../../support/signals.ts';

/** The exit code and the output of a call. */
export interface Called {
  readonly code: number;
  readonly out: string;
  readonly err: string;
  /** The output of `--json`. */
  readonly json: Readonly<Record<string, unknown>>;
}

export interface Calling {
  readonly env?: Environment;
  /** The standard input; a stream may never end. */
  readonly input?: string | Readable;
  /** Answers questions; default: nobody can be asked. */
  readonly confirm?: (question: string) => Promise<boolean>;
  /** Pretends to be a terminal. */
  readonly terminal?: boolean;
  readonly columns?: number;
  readonly clock?: Clock;
  readonly signal?: AbortSignal;
  /** Receives the output as it is written. */
  readonly written?: Signal<string>;
}

/** Calls the command line as a process would. */
export async function svc(words: readonly string[], calling: Calling = {}): Promise<Called> {
  const out: string[] = [];
  const err: string[] = [];
  const screen = (to: string[]) => ({
    write: (text: string): void => {
      to.push(text);
      calling.written?.send(text);
    },
    isTerminal: calling.terminal ?? false,
    columns: calling.columns,
  });
  const { signal = new AbortController().signal } = calling;
  const line = createCommandLine(
    {
      env: calling.env ?? {},
      out: screen(out),
      err: screen(err),
      input: async () => {
        const { input = '' } = calling;
        return typeof input === 'string' ? input : readInput(input, signal);
      },
      confirm: calling.confirm ?? null,
      clock: calling.clock ?? new SystemClock(),
      signal,
    },
    '1.2.3',
  );
  const code = await line.run(words);
  const text = out.join('');
  return {
    code,
    out: text,
    err: err.join(''),
    get json() {
      return JSON.parse(text) as Readonly<Record<string, unknown>>;
    },
  };
}
