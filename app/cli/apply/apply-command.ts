import type { Command } from 'commander';
import type { CommandLine } from '../program.ts';

/** What `svc apply` is told. */
export interface ApplyOptions {
  readonly file: string;
  readonly dryRun?: boolean;
}

const EXAMPLE = `
A file:
  set: nightly                # its tasks carry the tag apply:nightly
  defaults: { timezone: Europe/Berlin, max_retries: 1 }
  tasks:
    - name: report            # by this it is found again; title and description are it, where left out
      schedule_kind: cron
      schedule_expr: 0 3 * * *
      payload: { pipeline: [{ uses: echo, with: { text: good night } }] }
    - name: cleanup
      paused: true
      schedule_kind: rrule
      schedule_expr: FREQ=WEEKLY;BYDAY=SU;BYHOUR=4;BYMINUTE=0;BYSECOND=0`;

/** `svc apply`: makes the tasks of a set those of a file. */
export function addApplyCommand(line: CommandLine): Command {
  const command = line.program
    .command('apply')
    .description('creates, changes and cancels tasks, so that those of a set match a file')
    .requiredOption('-f, --file <file>', 'YAML or JSON; - is the standard input')
    .option('--dry-run', 'only says what would be done')
    .addHelpText('after', EXAMPLE);
  const examples = ['apply -f tasks.yaml --dry-run', 'apply -f tasks.yaml --reason "release 12"'];
  line.does<ApplyOptions>(command, examples, async (session, options) => {
    const { apply } = await import('./apply.ts');
    return apply(session, options);
  });
  return command;
}
