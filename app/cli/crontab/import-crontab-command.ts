import type { Command } from 'commander';
import { flag, short, text, withDefault } from '../options.ts';
import type { CommandLine } from '../program.ts';

const options = {
  system: flag('the crontab names a user before each command, as /etc/crontab does'),
  set: withDefault(text('name', 'tasks get the tag apply:<name>'), 'crontab'),
  timezone: text('zone', "for jobs without CRON_TZ (default: this machine's zone)"),
  post: text('url', 'runs POST their command to this URL; without it tasks are paused and log it'),
  skipBad: flag('leave out lines that cannot be imported'),
  cancelMissing: flag('cancel tasks of the set whose line is gone'),
  dryRun: flag('only show the changes'),
  yes: short('y', flag('create the tasks')),
};

/** `svc import crontab` */
export function addCrontabImport(line: CommandLine, group: Command): void {
  line.add(group, 'crontab [file]', {
    description:
      'show the tasks for the jobs of a crontab (- is standard input); with --yes, create them',
    options,
    examples: [
      'import crontab /etc/crontab --system --dry-run',
      'import crontab my.crontab --post https://jobs.example/run --yes',
    ],
    run: async (session, given, [file]) => {
      const { importCrontab } = await import('./import-crontab.ts');
      return importCrontab(session, file, given);
    },
  });
}
