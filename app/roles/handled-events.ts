import type { EventStore, Position } from '../../domain/event-store.ts';
import type { Coordination } from '../../scheduler/coordination.ts';
import { RUNS_REQUESTED_CHECKPOINT } from '../../scheduler/fires/run-requester.ts';
import { LogCheckpoint } from '../../scheduler/processes/log-checkpoint.ts';
import { EVENTS_MATCHED_CHECKPOINT } from '../../scheduler/waits/event-matching.ts';

/**
 * The position up to which published events may be truncated: their runs were requested, and the steps that wait for
 * them were resumed.
 * @throws CoordinationError; EventStoreError `UNAVAILABLE`
 */
export async function eventsHandledUpTo(
  coordination: Coordination,
  store: EventStore,
): Promise<Position> {
  const positionOf = (name: string): Promise<Position> =>
    new LogCheckpoint(coordination, store, name).load();
  const requested = await positionOf(RUNS_REQUESTED_CHECKPOINT);
  const matched = await positionOf(EVENTS_MATCHED_CHECKPOINT);
  return requested < matched ? requested : matched;
}
