import type { Command } from 'commander';
import type { CommandLine } from '../program.ts';

/** What `svc admin reset` is told. */
export interface ResetOptions {
  readonly agent?: string;
  readonly dataDir?: string;
}

/** `svc admin`: what only who has the machine may do. */
export function addAdminCommands(line: CommandLine): Command {
  const group = line.group('admin', 'what is done on the machine itself, past the interface');
  const reset = group
    .command('reset')
    .description('makes a new secret for the admin agent, and ends its sessions')
    .option('--agent <id>', 'another agent with the scope admin, by its id')
    .option('--data-dir <folder>', 'the folder of the embedded stores (SVC_DATA_DIR; ./data)');
  line.does<ResetOptions>(reset, ['admin reset'], async (session, options) => {
    const { resetAdmin } = await import('./admin-reset.ts');
    return resetAdmin(session, options);
  });
  return group;
}
