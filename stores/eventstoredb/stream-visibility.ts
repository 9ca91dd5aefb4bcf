import { pause, pauseAfter } from '../waiting.ts';
import type { Timings } from './connecting/timings.ts';
import type { LogReader } from './log-reader.ts';
import { truncatedBefore } from './truncation.ts';

/**
 * Waits until a stream can be read up to the revision that a conflict reported, for as long as a read may take. A
 * server checks appends against the events that it has written, but shows only events that are also replicated and
 * indexed. Reading too early would show the old state, and the caller would decide on it again.
 *
 * A revision that stays invisible may be lost for good with a failed leader. That is still a conflict.
 * @throws EventStoreError `UNAVAILABLE`, `STREAM_DELETED`
 */
export async function waitUntilVisible(
  reader: LogReader,
  timings: Timings,
  stream: string,
  revision: number,
): Promise<void> {
  const end = performance.now() + timings.readMs;
  for (let looks = 1; !(await isVisible(reader, stream, revision)); looks += 1) {
    const wait = pauseAfter(looks, timings.firstPauseMs, timings.longestPauseMs);
    if (performance.now() + wait >= end) return;
    await pause(wait);
  }
}

async function isVisible(reader: LogReader, stream: string, revision: number): Promise<boolean> {
  const [last] = await reader.stream(stream, 'end', 'backwards', 1);
  if (last !== undefined) return Number(last.revision) >= revision;
  // Not visible yet, or truncated.
  const before = await truncatedBefore(reader, stream);
  return before !== undefined && before > revision;
}
