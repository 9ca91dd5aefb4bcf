import type { RecordedEvent } from '../../../domain/event-store.ts';
import { isEnding, type Ledger } from '../ledger.ts';

/**
 * Tasks that share a concurrency key never had more than `limit` concurrent runs. A run counts from its start until it
 * leaves its slot (`leavesSlot`). It keeps its slot after its worker died, until it resumes.
 */
export function faultsOfExclusion(
  ledger: Ledger,
  tasks: ReadonlySet<string>,
  limit: number,
): string[] {
  const faults: string[] = [];
  const sharing = new Set(
    ledger
      .runs()
      .filter(({ request }) => tasks.has(request.data.task_id))
      .map(({ request }) => request.stream),
  );
  const underWay = new Set<string>();
  for (const event of ledger.events) {
    if (!sharing.has(event.stream)) continue;
    if (event.type === 'RunStarted') {
      underWay.add(event.stream);
      if (underWay.size > limit)
        faults.push(`${event.position}: ${[...underWay].join()} are running`);
    } else if (leavesSlot(event)) {
      underWay.delete(event.stream);
    }
  }
  return faults;
}

/**
 * Whether a run no longer holds its slot after an event. A queued run that nobody starts for the length of a lease loses
 * its slot (`slot_expired`), even in the middle of its pipeline.
 */
export const leavesSlot = (event: RecordedEvent): boolean =>
  isEnding(event) ||
  event.type === 'RunAttemptFailed' ||
  (event.type === 'RunInterrupted' && event.data.cause === 'slot_expired');
