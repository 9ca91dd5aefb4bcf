import type { Membership } from '../processes/membership.ts';

/**
 * A run's preferred worker: the highest hash of run and worker (rendezvous hashing, Thaler and Ravishankar 1998). All
 * processes select the same worker, and a worker that joins or leaves moves only its own share of runs.
 */
export function preferredWorker(runId: string, workers: readonly string[]): string | null {
  let best: string | null = null;
  let highest = -1;
  for (const worker of workers) {
    const score = fnv1a(runId, worker);
    if (score > highest) {
      highest = score;
      best = worker;
    }
  }
  return best;
}

/**
 * The preferred worker among the members.
 * @param affinity returns the run's id, or the key that is used instead
 */
export function preferredMember(
  affinity: () => string,
  membership: Pick<Membership, 'id' | 'withRole'>,
): string {
  const workers = membership.withRole('worker');
  // With a single member, the affinity does not matter.
  return (workers.length < 2 ? null : preferredWorker(affinity(), workers)) ?? membership.id;
}

/** Whether this process is the preferred worker. @param affinity as for {@link preferredMember} */
export const isPreferred = (
  affinity: () => string,
  membership: Pick<Membership, 'id' | 'withRole'>,
): boolean => preferredMember(affinity, membership) === membership.id;

/** FNV-1a, 32 bits, with a final mix so that similar names score differently. */
function fnv1a(a: string, b: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < a.length; i += 1) hash = Math.imul(hash ^ a.charCodeAt(i), 0x01000193);
  for (let i = 0; i < b.length; i += 1) hash = Math.imul(hash ^ b.charCodeAt(i), 0x01000193);
  hash ^= hash >>> 16;
  hash = Math.imul(hash, 0x85ebca6b);
  hash ^= hash >>> 13;
  return hash >>> 0;
}
