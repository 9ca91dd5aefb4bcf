import { Command, CommanderError } from 'commander';
import {
  CommandError,
  exitCodes,
  FollowEndedError,
  InterruptedError,
  OutputLostError,
} from './calling/command-errors.ts';
import { serviceAddress } from './calling/service-address.ts';
import { Session, type GlobalOptions } from './calling/session.ts';
import type { CliEnvironment } from './calling/cli-environment.ts';
import { buildOptions, type DeclaredOptions, type OptionValues } from './options.ts';

/** Declares what a command takes and does. */
export interface CommandSpec<S extends DeclaredOptions> {
  readonly description: string;
  readonly options?: S;
  /** Lines without `svc`, shown at the end of the help. */
  readonly examples: readonly string[];
  /** Returns the exit code if it isn't 0. */
  readonly run: (
    session: Session,
    options: OptionValues<S>,
    args: readonly string[],
  ) => Promise<number | void>;
}

/** Assembles the commands and runs one of them. */
export class CommandLine {
  readonly program: Command;
  readonly #environment: CliEnvironment;
  #exitCode = 0;

  /** @param version printed by `--version` */
  constructor(environment: CliEnvironment, version: string) {
    const { out, err } = environment;
    this.#environment = environment;
    this.program = new Command('svc')
      .description('Manages tasks, runs, agents and events of the scheduling service.')
      .version(version, '-V, --version', 'print the version')
      .helpOption('-h, --help', 'print this help')
      .helpCommand(false)
      .option('--url <url>', 'address of the service (default: SVC_URL, or the local service)')
      .option('--json', "print the service's response as JSON")
      .option('--no-color', 'print without colours (also: NO_COLOR)')
      .option('--reason <text>', 'record this reason in the events of the change')
      .option('--namespace <name>', 'for admins: limit the command to this namespace')
      .exitOverride()
      .showHelpAfterError('(use --help for usage)')
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

  /** Adds a group of commands, such as `tasks`. */
  group(name: string, description: string): Command {
    return this.program.command(name).description(description).helpCommand(false);
  }

  /**
   * Adds a command to a group or to the program. `list` is also called `ls`.
   * @param usage its name and arguments, such as `show <id>`
   */
  add<S extends DeclaredOptions>(parent: Command, usage: string, spec: CommandSpec<S>): Command {
    const command = parent.command(usage);
    return this.define(command.name() === 'list' ? command.alias('ls') : command, spec);
  }

  /** Gives a command its options, help and action. */
  define<S extends DeclaredOptions>(command: Command, spec: CommandSpec<S>): Command {
    const examples = spec.examples.map((example) => `  $ svc ${example}`).join('\n');
    command.description(spec.description).addHelpText('after', `\nExamples:\n${examples}`);
    for (const option of buildOptions(spec.options ?? {})) command.addOption(option);
    return command.action(async () => {
      const given = command.optsWithGlobals<GlobalOptions & { readonly dataDir?: string }>();
      const { env, signal } = this.#environment;
      const url = await serviceAddress(env, given, signal);
      const session = new Session(this.#environment, given, url);
      this.#exitCode = (await spec.run(session, command.opts(), command.args)) ?? 0;
    });
  }

  /** Runs a command. Never rejects: prints errors and returns the exit code. */
  async run(words: readonly string[]): Promise<number> {
    const { err, signal } = this.#environment;
    try {
      await this.program.parseAsync([...words], { from: 'user' });
      return this.#exitCode;
    } catch (error) {
      if (error instanceof CommanderError) {
        const isRequested = ['commander.helpDisplayed', 'commander.version'].includes(error.code);
        return isRequested ? exitCodes.ok : exitCodes.usage;
      }
      // Already reported where it occurred.
      if (signal.reason instanceof OutputLostError) return signal.reason.exitCode;
      if (error instanceof FollowEndedError) return exitCodes.ok;
      const isInterrupted = signal.aborted && !(error instanceof CommandError);
      const shown = isInterrupted
        ? new InterruptedError(error, 'interrupted; the request may still have taken effect')
        : error;
      err.write(`svc: ${shown instanceof Error ? shown.message : String(shown)}\n`);
      return shown instanceof CommandError ? shown.exitCode : exitCodes.failure;
    }
  }
}
