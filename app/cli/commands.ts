import { addAdminCommands } from './store/admin-command.ts';
import { addAgentCommands } from './records/agent-commands.ts';
import { addApplyCommand } from './apply/apply-command.ts';
import { addArchiveCommands } from './store/archive-commands.ts';
import { addBackfillCommands } from './tasks/backfill-commands.ts';
import { addAuditCommands } from './records/audit-commands.ts';
import { addCompletionCommand } from './completion-command.ts';
import { addDoctorCommand } from './store/doctor-command.ts';
import { addEventCommands } from './records/event-commands.ts';
import { addExportCommand } from './store/export-command.ts';
import { addOperationsCommands } from './records/operations-commands.ts';
import { addOverviewCommands } from './records/overview-commands.ts';
import { addProjectionCommands } from './views/projection-commands.ts';
import { CommandLine } from './program.ts';
import { addReplayCommand } from './views/replay-command.ts';
import { addRunCommands } from './runs/run-commands.ts';
import { addSimulateCommand } from './forecast/simulate-command.ts';
import { addTaskCommands } from './tasks/task-commands.ts';
import type { Surroundings } from './calling/surroundings.ts';
import { addWebhookCommands } from './records/webhook-commands.ts';

/**
 * The command line with all its commands.
 * @param version as `--version` prints it
 */
export function createCommandLine(surroundings: Surroundings, version: string): CommandLine {
  const line = new CommandLine(surroundings, version);
  addTaskCommands(line);
  addRunCommands(line);
  addBackfillCommands(line);
  addAgentCommands(line);
  addWebhookCommands(line);
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
