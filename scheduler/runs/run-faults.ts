import type { Clock, Instant } from '../../domain/clock.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import { isPassing } from './run-outcome.ts';
import type { QueuedRun } from './run-queue.ts';

/** Before a run that could not be led on is taken up again: at first, and at most. Milliseconds. */
const PAUSE = 1000;
const MOST_PAUSE = 60_000;

/** A run that was led on for so long has its past faults behind it. Milliseconds. */
const FORGOTTEN_AFTER = 5 * MOST_PAUSE;

const faults = new WeakMap<QueuedRun, { readonly times: number; readonly at: Instant }>();

/**
 * A run could not be led on: a task that can't be read, say. Each time in a row it is put off for longer, and so told
 * of at growing intervals, so that one such run neither fills the log nor takes a slot from others. While it is the
 * log that is away, every run is tried again as soon as it may be back.
 *
 * @returns when it may be taken up again
 */
export function putOff(
  run: QueuedRun,
  error: unknown,
  { clock, telemetry }: { readonly clock: Clock; readonly telemetry: Telemetry },
): Instant {
  const now = clock.now();
  const before = faults.get(run);
  const goesOn = before !== undefined && Math.abs(now - before.at) < FORGOTTEN_AFTER;
  const times = goesOn ? before.times + 1 : 1;
  faults.set(run, { times, at: now });
  telemetry.count('run_faults_total');
  const isLogAway = isPassing(error);
  const isTold = !isLogAway || Number.isInteger(Math.log2(times));
  const fields = { run: run.id, times, error };
  telemetry.log[isTold ? 'error' : 'debug']('a run could not be led on; trying again', fields);
  return now + (isLogAway ? PAUSE : Math.min(PAUSE * 2 ** (times - 1), MOST_PAUSE));
}
