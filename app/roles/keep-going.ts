import type { Clock } from '../../domain/clock.ts';
import { EventStoreError } from '../../domain/event-store.ts';
import type { Telemetry } from '../../observability/telemetry.ts';

/** Pauses before failed work restarts. Milliseconds; the last one repeats. */
const PAUSES = [100, 250, 500, 1000, 2000] as const;

/**
 * Work that fails sooner than this after its start waits longer: some work reports its start before it has read anything.
 * Milliseconds.
 */
const STABLE_AFTER = 5_000;

/** The state of supervised work. */
export interface Ongoing {
  readonly name: string;
  state: 'starting' | 'going' | 'failing' | 'stopped';
  /** Why it fails. */
  problem: string | null;
}

/**
 * Runs work until the signal is aborted. A failure, such as an unavailable store, is logged, and the work restarts after
 * a pause. Never rejects.
 *
 * @param work calls `started` once it does its part
 */
export async function keepGoing(options: {
  readonly ongoing: Ongoing;
  readonly work: (started: () => void) => Promise<void>;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}): Promise<void> {
  const { ongoing, work, signal, clock, telemetry } = options;
  for (let failures = 0; !signal.aborted;) {
    let startedAt = Number.POSITIVE_INFINITY;
    try {
      await work(() => {
        startedAt = Math.min(startedAt, clock.steady());
        ongoing.state = 'going';
        ongoing.problem = null;
      });
      if (signal.aborted) break;
      throw new Error('it ended unexpectedly');
    } catch (error) {
      if (signal.aborted) break;
      if (clock.steady() - startedAt >= STABLE_AFTER) failures = 0;
      ongoing.state = 'failing';
      ongoing.problem = error instanceof Error ? error.message : String(error);
      const isNewer = error instanceof EventStoreError && error.code === 'NEWER_SCHEMA';
      const level = isNewer || failures === 0 ? 'error' : 'warn';
      telemetry.log[level](`${ongoing.name} failed; retrying`, { error });
      const pause = PAUSES[Math.min(failures, PAUSES.length - 1)] ?? 2000;
      failures += 1;
      await clock.sleep(pause, signal).catch(() => {});
    }
  }
  ongoing.state = 'stopped';
}
