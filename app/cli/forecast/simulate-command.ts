import type { Command } from 'commander';
import type { CommandLine } from '../program.ts';
import { wholeNumberOf } from '../terminal/values.ts';

/** What `svc simulate` is told. */
export interface SimulateOptions {
  readonly days: number;
  readonly from?: string;
  readonly hourly?: boolean;
  readonly dataDir?: string;
}

/** `svc simulate`: what the tasks that there are would fire. */
export function addSimulateCommand(line: CommandLine): Command {
  const command = line.program
    .command('simulate')
    .description('what the present tasks would fire, per hour, and when most; reads the store')
    .option('--days <n>', 'how many days, 1 to 366', wholeNumberOf(1, 366), 30)
    .option('--from <instant>', 'from when on (now)')
    .option('--hourly', 'a line for each hour')
    .option('--data-dir <folder>', 'the folder of the embedded stores (SVC_DATA_DIR; ./data)');
  const examples = ['simulate', 'simulate --days 7 --hourly', 'simulate --from 2026-12-24T00:00Z'];
  line.does<SimulateOptions>(command, examples, async (session, options) => {
    const { simulate } = await import('./simulate.ts');
    await simulate(session, options);
  });
  return command;
}
