import { isEnding, type Ledger } from '../ledger.ts';

/**
 * Of the runs of tasks that share a concurrency key, never more than `limit` were under way at a time. A run is so from
 * its start to its end or to the failure of its attempt; one whose worker is gone keeps its place until it goes on.
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
      if (underWay.size > limit) faults.push(`${event.position}: ${[...underWay].join()} run`);
    } else if (isEnding(event) || event.type === 'RunAttemptFailed') {
      underWay.delete(event.stream);
    }
  }
  return faults;
}
