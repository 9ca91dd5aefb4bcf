/**
 * Maps each item, in batches of `atATime`. Rejects with the first error after its batch has ended, so that a retry
 * meets no work in progress.
 * @returns the results, in the order of the items
 */
export async function mapInBatches<T, R>(
  all: readonly T[],
  atATime: number,
  work: (one: T) => Promise<R>,
): Promise<readonly R[]> {
  const results: R[] = [];
  for (let from = 0; from < all.length; from += atATime) {
    const some = all.slice(from, from + atATime);
    for (const outcome of await Promise.allSettled(some.map(work))) {
      if (outcome.status === 'rejected') throw outcome.reason;
      results.push(outcome.value);
    }
  }
  return results;
}
