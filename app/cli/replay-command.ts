import type { CommandLine } from './program.ts';
import { addRecordReplays } from './replay-records.ts';

/** `svc replay …`: the past, folded from the log again. */
export function addReplayCommand(line: CommandLine): void {
  const group = line.group('replay', 'records as they were at a moment of the past');
  addRecordReplays(line, group);
}
