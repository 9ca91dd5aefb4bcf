import { addAdminCommands } from './admin-command.ts';
import { CommandLine } from './program.ts';
import { addSimulateCommand } from './simulate-command.ts';
import type { Surroundings } from './surroundings.ts';

/**
 * The command line with all its commands.
 * @param version as `--version` prints it
 */
export function createCommandLine(surroundings: Surroundings, version: string): CommandLine {
  const line = new CommandLine(surroundings, version);
  addSimulateCommand(line);
  addAdminCommands(line);
  return line;
}
