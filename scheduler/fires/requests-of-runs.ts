import { fromIso } from '../../domain/clock.ts';
import { isConflict, type StreamAppend } from '../../domain/event-store.ts';
import type { DataOf } from '../../domain/events/catalogue.ts';
import type { ScheduledRun } from '../../domain/tasks/fires.ts';
import { toNewEvents, type CommandContext } from '../../domain/handle.ts';
import { momentBasedId } from '../../domain/ids.ts';
import { streams } from '../../domain/streams.ts';

/** The same for whoever requests this run: two who do so at once append the same event. */
export function requestCommandId(
  runId: string,
  request: Pick<DataOf<'RunRequested'>, 'task_id' | 'scheduled_for' | 'run_at'>,
): string {
  const moment = fromIso(request.scheduled_for ?? request.run_at);
  return momentBasedId(moment, 'request', request.task_id, runId);
}

/** The append that begins a run. */
export function requestOf(run: ScheduledRun, context: CommandContext): StreamAppend {
  const stream = streams.run(run.runId);
  const events = toNewEvents(stream, [{ type: 'RunRequested', data: run.request }], context);
  return { stream, events, expected: 'none' };
}

/** A conflict means here that it is done already. */
export function ignoreConflict(error: unknown): void {
  if (!isConflict(error)) throw error;
}
