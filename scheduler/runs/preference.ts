/**
 * The worker that is the first choice for a run: the highest of all hashes of run and worker (rendezvous
 * hashing, Thaler and Ravishankar 1998), so that everyone chooses alike, and a worker that comes or goes moves
 * only its own share.
 */
export function prefers(runId: string, workers: readonly string[]): string | null {
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

/** FNV-1a, 32 bits, with a last mixing so that similar names do not score alike. */
function fnv1a(a: string, b: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < a.length; i += 1) hash = Math.imul(hash ^ a.charCodeAt(i), 0x01000193);
  for (let i = 0; i < b.length; i += 1) hash = Math.imul(hash ^ b.charCodeAt(i), 0x01000193);
  hash ^= hash >>> 16;
  hash = Math.imul(hash, 0x85ebca6b);
  hash ^= hash >>> 13;
  return hash >>> 0;
}
