/** After so many windows, the work is too slow for one; its last result shows what it saw. */
const MAX_ATTEMPTS = 3;

/**
 * Does work whose counts belong to one window of `Coordination.count`. Windows begin at multiples of their
 * length, by the real clock: when one ends in between, the count restarts, and so does the work.
 * @param windowMs the length of a window, in milliseconds
 * @param work counts under a name of its own at each call
 */
export async function withinOneWindow<T>(windowMs: number, work: () => Promise<T>): Promise<T> {
  const currentWindow = (): number => Math.floor(Date.now() / windowMs);
  for (let attempt = 1; ; attempt += 1) {
    const begun = currentWindow();
    const result = await work();
    if (currentWindow() === begun || attempt === MAX_ATTEMPTS) return result;
  }
}
