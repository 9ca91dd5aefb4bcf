import { addAdminCommands } from './admin-command.ts';
import { addAgentCommands } from './agent-commands.ts';
import { addApplyCommand } from './apply-command.ts';
import { addArchiveCommands } from './archive-commands.ts';
import { addAuditCommands } from './audit-commands.ts';
import { addCompletionCommand } from './completion-command.ts';
import { addDoctorCommand } from './doctor-command.ts';
import { addEventCommands } from './event-commands.ts';
import { addExportCommand } from './export-command.ts';
import { addOperationsCommands } from './operations-commands.ts';
import { addOverviewCommands } from './overview-commands.ts';
import { addProjectionCommands } from './projection-commands.ts';
import { CommandLine } from './program.ts';
import { addReplayCommand } from './replay-command.ts';
import { addRunCommands } from './run-commands.ts';
import { addSimulateCommand } from './simulate-command.ts';
import { addTaskCommands } from './task-commands.ts';
import type { Surroundings } from './surroundings.ts';

/**
 * The command line with all its commands.
 * @param version as `--version` prints it
 */
export function createCommandLine(surroundings: Surroundings, version: string): CommandLine {
  const line = new CommandLine(surroundings, version);
  addTaskCommands(line);
  addRunCommands(line);
  addAgentCommands(line);
  addEventCommands(line);
  addOverviewCommands(line);
  addOperationsCommands(line);
  addProjectionCommands(line);
  addAuditCommands(line);
  addReplayCommand(line);
  addApplyCommand(line);
  addSimulateCommand(line);
  addArchiveCommands(line, version);
  addExportCommand(line, version);
  addDoctorCommand(line);
  addAdminCommands(line);
  addCompletionCommand(line);
  return line;
}
