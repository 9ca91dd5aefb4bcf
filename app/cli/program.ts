import { Command, CommanderError } from 'commander';
import {
  BrokenOff,
  CommandFault,
  exitCodes,
  FollowingEnded,
  OutputLost,
} from './calling/faults.ts';
import { Session, type GlobalOptions } from './calling/session.ts';
import { serviceAddress } from './calling/service-address.ts';
import type { Surroundings } from './calling/surroundings.ts';

/** What a command does; the exit code, where it is not 0. */
export type Work<O> = (
  session: Session,
  options: O,
  args: readonly string[],
) => Promise<number | void>;

/** Of a command that was broken off while it waited. */
const UNANSWERED = 'it was broken off; what it had asked for may be done all the same';

/** Puts commands together, so that each says only what it takes and does. */
export class CommandLine {
  readonly program: Command;
  readonly #surroundings: Surroundings;
  #exitCode = 0;

  constructor(surroundings: Surroundings, version: string) {
    const { out, err } = surroundings;
    this.#surroundings = surroundings;
    this.program = new Command('svc')
      .description('Tasks, runs, agents and events of the scheduling service, at a terminal.')
      .version(version, '-V, --version', 'print the version')
      .helpOption('-h, --help', 'print this help')
      .helpCommand(false)
      .option('--url <url>', 'where the service is (SVC_URL; the one that runs on SVC_DATA_DIR)')
      .option('--json', 'answer in JSON, as the service gives it')
      .option('--no-color', 'no colours, also on a terminal (NO_COLOR)')
      .option('--reason <text>', 'why; stands in the events of what is changed')
      .exitOverride()
      .showHelpAfterError('(add --help to see what it takes)')
      .configureOutput({
        writeOut: (text) => out.write(text),
        writeErr: (text) => err.write(text),
        outputError: (text, write) => write(text.replace(/^error: /, 'svc: ')),
        getOutHelpWidth: () => Math.min(out.columns ?? 100, 110),
        getErrHelpWidth: () => Math.min(err.columns ?? 100, 110),
        getOutHasColors: () => false,
        getErrHasColors: () => false,
      });
  }

  /** A group of commands, such as `tasks`. Without one of them it prints its help, as wrong use. */
  group(name: string, description: string): Command {
    return this.program.command(name).description(description).helpCommand(false);
  }

  /**
   * Lets a command do its work.
   * @param examples lines without the `svc` before them, shown at the end of the help
   */
  does<O>(command: Command, examples: readonly string[], work: Work<O>): void {
    const lines = examples.map((example) => `  $ svc ${example}`).join('\n');
    command.addHelpText('after', `\nExamples:\n${lines}`);
    command.action(async () => {
      const given = command.optsWithGlobals<GlobalOptions & { readonly dataDir?: string }>();
      const { env, signal } = this.#surroundings;
      const url = await serviceAddress(env, given, signal);
      const session = new Session(this.#surroundings, given, url);
      this.#exitCode = (await work(session, command.opts() as O, command.args)) ?? 0;
    });
  }

  /** Does what the words ask for. Never rejects: what goes wrong is told, and is the exit code. */
  async run(words: readonly string[]): Promise<number> {
    const { err, signal } = this.#surroundings;
    try {
      await this.program.parseAsync([...words], { from: 'user' });
      return this.#exitCode;
    } catch (error) {
      if (error instanceof CommanderError) {
        // Help that was asked for is no fault; help because no command was named is.
        const asked = ['commander.helpDisplayed', 'commander.version'].includes(error.code);
        return asked ? exitCodes.ok : exitCodes.usage;
      }
      // Told where it was noticed.
      if (signal.reason instanceof OutputLost) return signal.reason.exitCode;
      if (error instanceof FollowingEnded) return exitCodes.ok;
      // Whatever waited for an answer was broken off by the signal: it was not done, as far as anybody knows.
      const isBroken = signal.aborted && !(error instanceof CommandFault);
      const told = isBroken ? new BrokenOff(error, UNANSWERED) : error;
      err.write(`svc: ${told instanceof Error ? told.message : String(told)}\n`);
      return told instanceof CommandFault ? told.exitCode : exitCodes.failure;
    }
  }
}
