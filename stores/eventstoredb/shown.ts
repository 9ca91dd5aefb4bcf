import { pause, pauseAfter } from './connecting/pause.ts';
import type { Reading } from './reading.ts';
import type { Timings } from './connecting/timings.ts';
import { truncatedBefore } from './truncation.ts';

/**
 * Waits until a stream can be read up to a revision that a conflict has told of, for as long as a read may take. A server
 * checks an append against what it has written, and shows what is replicated and indexed besides: of a cluster that is
 * some milliseconds later, and where a disk stalls, more. Who read again before that would find what was there before,
 * and decide on it once more; or take a stream that has begun for one that was truncated.
 *
 * What is not shown by then may never be: a leader that has fallen may have been alone with it. Then it is a conflict
 * all the same.
 *
 * @throws EventStoreError `UNAVAILABLE`, `STREAM_DELETED`
 */
export async function untilShown(
  reading: Reading,
  timings: Timings,
  stream: string,
  revision: number,
): Promise<void> {
  const end = performance.now() + timings.readMs;
  for (let looks = 1; !(await isShown(reading, stream, revision)); looks += 1) {
    const wait = pauseAfter(looks, timings.firstPauseMs, timings.longestPauseMs);
    if (performance.now() + wait >= end) return;
    await pause(wait);
  }
}

async function isShown(reading: Reading, stream: string, revision: number): Promise<boolean> {
  const [last] = await reading.stream(stream, 'end', 'backwards', 1);
  if (last !== undefined) return Number(last.revision) >= revision;
  // Nothing to be read of it: not yet, or not any more.
  const before = await truncatedBefore(reading, stream);
  return before !== undefined && before > revision;
}
