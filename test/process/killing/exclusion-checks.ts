import { isEnding, type Ledger } from '../ledger.ts';

/**
 * Tasks that share a concurrency key never had more than `limit` concurrent runs. A run counts from
 * its start to its end or to its attempt's failure. It keeps its place after its worker died, until
 * it resumes.
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
