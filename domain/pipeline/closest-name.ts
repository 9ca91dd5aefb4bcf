/** The most names that are compared. A list may have thousands, and a comparison takes quadratic time in the length. */
const MAX_NAMES = 1000;
const MAX_LENGTH = 60;

/**
 * The existing name that was probably intended instead of an unknown one.
 * @returns null if no name is close; at most a third of the letters may be wrong
 */
export function closestName(given: string, names: readonly string[]): string | null {
  if (given.length > MAX_LENGTH) return null;
  const wanted = given.toLowerCase();
  let best: string | null = null;
  let least = Math.floor(given.length / 3) + 1;
  for (const name of names.slice(0, MAX_NAMES)) {
    if (Math.abs(name.length - given.length) >= least || name.length > MAX_LENGTH) continue;
    const distance = distanceOf(wanted, name.toLowerCase());
    if (distance >= least) continue;
    best = name;
    least = distance;
  }
  return best;
}

/** How many letters must be added, removed, replaced or swapped with the next one. */
function distanceOf(one: string, other: string): number {
  let before: number[] = [];
  let last = Array.from({ length: other.length + 1 }, (_, n) => n);
  for (let i = 1; i <= one.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= other.length; j += 1) {
      const isSame = one[i - 1] === other[j - 1];
      const replaced = (last[j - 1] ?? 0) + (isSame ? 0 : 1);
      let cost = Math.min((last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, replaced);
      const isSwap = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1];
      if (isSwap) cost = Math.min(cost, (before[j - 2] ?? 0) + 1);
      row.push(cost);
    }
    before = last;
    last = row;
  }
  return last[other.length] ?? 0;
}
