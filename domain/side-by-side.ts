/**
 * Does the same with each of many, so many at a time. Rejects with the first fault, once nothing is under way: what is
 * tried again meets nothing of it.
 *
 * @returns what came of each, in their order
 */
export async function sideBySide<T, R>(
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
