import { flag, required, short, text } from '../options.ts';
import type { CommandLine } from '../program.ts';

const FILE_EXAMPLE = `
A file:
  set: nightly                # its tasks have the tag apply:nightly
  defaults: { timezone: Europe/Berlin, max_retries: 1 }
  tasks:
    - name: report            # identifies the task; default for title and description
      schedule_kind: cron
      schedule_expr: 0 3 * * *
      payload: { pipeline: [{ uses: echo, with: { text: good night } }] }
    - name: cleanup
      paused: true
      schedule_kind: rrule
      schedule_expr: FREQ=WEEKLY;BYDAY=SU;BYHOUR=4;BYMINUTE=0;BYSECOND=0`;

/** `svc apply` */
export function addApplyCommand(line: CommandLine): void {
  const command = line.program.command('apply').addHelpText('after', FILE_EXAMPLE);
  line.define(command, {
    description: 'create, change and cancel tasks so that a set matches a file',
    options: {
      file: short('f', required(text('file', 'YAML or JSON; - is standard input'))),
      dryRun: flag('only show the changes'),
    },
    examples: ['apply -f tasks.yaml --dry-run', 'apply -f tasks.yaml --reason "release 12"'],
    run: async (session, { file, dryRun = false }) => {
      const { apply } = await import('./apply.ts');
      return apply(session, file, dryRun);
    },
  });
}
