import { BEGINNING, type EventStore, type Position } from '../../domain/event-store.ts';
import type { Coordination } from '../coordination.ts';

/**
 * A remembered place in the log; its beginning where none is remembered, and where the log does not reach that far:
 * it is an older one then, put back from a backup.
 */
export async function recallPosition(
  coordination: Coordination,
  store: EventStore,
  name: string,
): Promise<Position> {
  const remembered = (await coordination.recall(name)) ?? BEGINNING;
  return (await store.reaches(remembered)) ? remembered : BEGINNING;
}
