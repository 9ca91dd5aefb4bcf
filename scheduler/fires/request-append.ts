import { fromIso } from '../../domain/clock.ts';
import { isConflict, type StreamAppend } from '../../domain/event-store.ts';
import type { DataOf } from '../../domain/events/catalogue.ts';
import { toNewEvents, type CommandContext } from '../../domain/handle.ts';
import { timeBasedId } from '../../domain/ids.ts';
import { streams } from '../../domain/streams.ts';
import type { ScheduledRun } from '../../domain/tasks/fires.ts';

/** The message that reports a failed request, of the scheduler and of the process that repeats it. */
export const NOT_REQUESTED = 'could not request a run; retrying';

/**
 * The id of the command that requests a run. It is the same in every process, so concurrent requests append the same
 * event.
 */
export function requestCommandId(
  runId: string,
  request: Pick<DataOf<'RunRequested'>, 'task_id' | 'scheduled_for' | 'run_at'>,
): string {
  const instant = fromIso(request.scheduled_for ?? request.run_at);
  return timeBasedId(instant, 'request', request.task_id, runId);
}

/** The append that requests a run. */
export function requestAppend(
  { runId, request }: ScheduledRun,
  context: CommandContext,
): StreamAppend {
  const stream = streams.run(runId);
  const events = toNewEvents(stream, [{ type: 'RunRequested', data: request }], context);
  return { stream, events, expected: 'none' };
}

/** Ignores a conflict, for an append whose work is then already done. */
export function ignoreConflict(error: unknown): void {
  if (!isConflict(error)) throw error;
}
