import type { CommandLine } from '../program.ts';
import { addRecordReplays } from './replay-records.ts';
import { addViewReplays } from './replay-views.ts';

/** `svc replay …` */
export function addReplayCommands(line: CommandLine): void {
  const group = line.group('replay', 'show records and whole views as of a past time');
  addRecordReplays(line, group);
  addViewReplays(line, group);
}
