import { InterruptedError, usageError } from './command-errors.ts';
import type { CliEnvironment } from './cli-environment.ts';

/**
 * Asks on the terminal whether to go on.
 * @param question such as `Cancel 3 runs?`
 * @param isAgreed whether `--yes` answers it
 * @returns whether to go on
 * @throws CommandError where nobody can be asked; InterruptedError on Ctrl-C
 */
export async function confirmed(
  { confirm }: Pick<CliEnvironment, 'confirm'>,
  question: string,
  isAgreed: boolean,
): Promise<boolean> {
  if (isAgreed) return true;
  if (confirm !== null) return confirm(question);
  throw usageError(
    `nothing was done: confirm with --yes, as no terminal can be asked: ${question}`,
  );
}

/** Asks a person. Anything but `y` or `yes` is a no, and so is the end of the input. */
export async function askOnTerminal(
  question: string,
  {
    input,
    output,
    signal,
  }: {
    readonly input: NodeJS.ReadableStream;
    readonly output: NodeJS.WritableStream;
    readonly signal: AbortSignal;
  },
): Promise<boolean> {
  // Imported here because few commands ask.
  const { createInterface } = await import('node:readline/promises');
  const lines = createInterface({ input, output });
  try {
    const ended = new Promise<string>((resolve) => lines.once('close', () => resolve('')));
    const answer = await Promise.race([lines.question(`${question} [y/N] `, { signal }), ended]);
    return /^\s*y(es)?\s*$/i.test(answer);
  } catch (error) {
    throw signal.aborted ? new InterruptedError(error, 'interrupted; nothing was done') : error;
  } finally {
    lines.close();
  }
}
