import { setTimeout as pause } from 'node:timers/promises';
import type { BenchStore } from '../bench-service.ts';

/**
 * Requests runs of a task at a steady rate until it is told to stop. Returns how many.
 * @param rate runs a second
 */
export async function requestRuns(
  bench: BenchStore,
  rate: number,
  signal: AbortSignal,
): Promise<number> {
  const { id, task } = await bench.createTask({ title: 'Take a parcel' });
  const began = Date.now();
  let count = 0;
  while (!signal.aborted) {
    const due = Math.floor(((Date.now() - began) / 1000) * rate);
    const missing = Math.max(0, due - count);
    await Promise.all(Array.from({ length: missing }, () => bench.requestRun(id, task)));
    count += missing;
    await pause(Math.max(20, 1000 / rate));
  }
  return count;
}
