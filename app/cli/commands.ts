import { addApplyCommand } from './apply/apply-command.ts';
import type { CliEnvironment } from './calling/cli-environment.ts';
import { addCompletionCommand } from './completion-command.ts';
import { CommandLine } from './program.ts';
import { addAgentCommands } from './records/agent-commands.ts';
import { addAuditCommand } from './records/audit-commands.ts';
import { addEventCommands } from './records/event-commands.ts';
import { addKeyCommands } from './records/key-commands.ts';
import { addNamespaceCommands } from './records/namespace-commands.ts';
import { addOperationsCommands } from './records/operations-commands.ts';
import { addOverviewCommands } from './records/overview-commands.ts';
import { addSecretCommands } from './records/secret-commands.ts';
import { addStreamCommands } from './records/stream-commands.ts';
import { addWebhookCommands } from './records/webhook-commands.ts';
import { addApprovalCommands } from './runs/approval-commands.ts';
import { addRunCommands } from './runs/run-commands.ts';
import { addWorkerCommands } from './runs/worker-commands.ts';
import { addArchiveCommands, addExportCommand } from './store/archive-commands.ts';
import { addStoreCommands, addSimulateCommand } from './store/store-commands.ts';
import { addBackfillCommands } from './tasks/backfill-commands.ts';
import { addTaskCommands } from './tasks/task-commands.ts';
import { addProjectionCommands } from './views/projection-commands.ts';
import { addReplayCommands } from './views/replay-commands.ts';

/**
 * The command line with all its commands, in the order of the help.
 * @param version printed by `--version` and recorded in archives
 */
export function createCommandLine(environment: CliEnvironment, version: string): CommandLine {
  const line = new CommandLine(environment, version);
  addTaskCommands(line);
  addRunCommands(line);
  addApprovalCommands(line);
  addWorkerCommands(line);
  addBackfillCommands(line);
  addAgentCommands(line);
  addKeyCommands(line);
  addNamespaceCommands(line);
  addWebhookCommands(line);
  addSecretCommands(line);
  addEventCommands(line);
  addOverviewCommands(line);
  addOperationsCommands(line);
  addProjectionCommands(line);
  addAuditCommand(line);
  addStreamCommands(line);
  addReplayCommands(line);
  addApplyCommand(line);
  addSimulateCommand(line);
  addArchiveCommands(line, version);
  addExportCommand(line, version);
  addStoreCommands(line);
  addCompletionCommand(line);
  return line;
}
