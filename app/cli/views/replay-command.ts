import type { CommandLine } from '../program.ts';
import { addRecordReplays } from './replay-records.ts';
import { addViewReplays } from './replay-views.ts';

/** `svc replay …`: the past, folded from the log again. */
export function addReplayCommand(line: CommandLine): void {
  const group = line.group(
    'replay',
    'records and whole views as they were at a moment of the past',
  );
  addRecordReplays(line, group);
  addViewReplays(line, group);
}
