import type { Clock } from '../../domain/clock.ts';

export interface Priority {
  lower(): void;
  restore(): void;
}

/** Milliseconds. Shorter fills do not lower the priority. */
const MIN_DURATION_MS = 1000;

/**
 * Lowers a thread's priority while it fills views for longer than a second, so that requests and runs go first.
 * @returns a function to call when a fill begins; the function that this returns is called when the fill ends
 */
export function yieldWhileFilling(priority: Priority, clock: Clock): () => () => void {
  let fills = 0;
  return () => {
    let isLong = false;
    const cancel = clock.after(MIN_DURATION_MS, () => {
      isLong = true;
      fills += 1;
      if (fills === 1) priority.lower();
    });
    return () => {
      cancel();
      if (!isLong) return;
      fills -= 1;
      if (fills === 0) priority.restore();
    };
  };
}
