import type { Clock } from '../../domain/clock.ts';
import { EventStoreError } from '../../domain/event-store.ts';
import type { Telemetry } from '../../observability/telemetry.ts';

/** Pauses before work that failed is begun again. Milliseconds; the last one stays. */
const PAUSES = [100, 250, 500, 1000, 2000] as const;

/**
 * What went on for less than this before it failed has failed again, and waits longer: some says that it has started
 * before it has read anything. Milliseconds.
 */
const WELL_BEGUN = 5_000;

/** How a piece of ongoing work is doing. */
export interface Ongoing {
  readonly name: string;
  state: 'starting' | 'going' | 'failing' | 'stopped';
  /** Why it fails. */
  problem: string | null;
}

/**
 * Keeps work going that ends only when it is told to: what it stumbles over (a store that is away) is
 * logged, and it is begun again after a pause. Never rejects.
 *
 * @param work calls `started` once it does what it is there for
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
    let begun = Number.POSITIVE_INFINITY;
    try {
      await work(() => {
        begun = Math.min(begun, clock.steady());
        ongoing.state = 'going';
        ongoing.problem = null;
      });
      if (signal.aborted) break;
      throw new Error('it ended, though nobody stopped it');
    } catch (error) {
      if (signal.aborted) break;
      if (clock.steady() - begun >= WELL_BEGUN) failures = 0;
      ongoing.state = 'failing';
      ongoing.problem = error instanceof Error ? error.message : String(error);
      const newer = error instanceof EventStoreError && error.code === 'NEWER_SCHEMA';
      telemetry.log[newer || failures === 0 ? 'error' : 'warn'](
        `${ongoing.name} failed; trying again`,
        {
          error,
        },
      );
      const pause = PAUSES[Math.min(failures, PAUSES.length - 1)] ?? 2000;
      failures += 1;
      await clock.sleep(pause, signal).catch(() => {});
    }
  }
  ongoing.state = 'stopped';
}
