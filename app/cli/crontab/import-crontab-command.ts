import type { Command } from 'commander';
import type { CommandLine } from '../program.ts';

/** What `svc import crontab` is told. */
export interface ImportCrontabOptions {
  readonly system?: boolean;
  readonly set: string;
  readonly timezone?: string;
  readonly post?: string;
  readonly skipBad?: boolean;
  readonly cancelMissing?: boolean;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
}

/** `svc import crontab`: makes the jobs of a crontab tasks. */
export function addCrontabImport(line: CommandLine, group: Command): Command {
  const command = group
    .command('crontab')
    .argument('[file]', 'the crontab; - is the standard input')
    .description('shows the tasks that the jobs of a crontab become and, with --yes, creates them')
    .option('--system', 'a user stands before each command, as in /etc/crontab')
    .option('--set <name>', 'its tasks carry the tag apply:<name>', 'crontab')
    .option('--timezone <zone>', "of jobs without CRON_TZ (this machine's zone)")
    .option('--post <url>', 'runs POST the command there; else they log it, and tasks are paused')
    .option('--skip-bad', 'leaves out lines that cannot be imported')
    .option('--cancel-missing', 'cancels tasks of the set whose line is gone')
    .option('--dry-run', 'only shows what would be done')
    .option('-y, --yes', 'creates the tasks');
  const examples = [
    'import crontab /etc/crontab --system --dry-run',
    'import crontab my.crontab --post https://jobs.example/run --yes',
  ];
  line.does<ImportCrontabOptions>(command, examples, async (session, options, [file]) => {
    const { importCrontab } = await import('./import-crontab.ts');
    return importCrontab(session, file, options);
  });
  return command;
}
