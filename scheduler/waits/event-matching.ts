import type { Wait } from '../../domain/runs/run-waits.ts';
import type { Coordination } from '../coordination.ts';
import type { Leadership } from '../processes/leadership.ts';
import { LogCheckpoint } from '../processes/log-checkpoint.ts';
import type { QueuedRun } from '../runs/queued-run.ts';
import { EventConditions } from './event-conditions.ts';
import { EventFollower, type FollowerParts } from './event-follower.ts';
import { PersistentWork } from './persistent-work.ts';

/** The name of its saved position. */
export const EVENTS_MATCHED_CHECKPOINT = 'events-matched';

interface MatchingOptions extends Pick<
  FollowerParts,
  'store' | 'queue' | 'clock' | 'telemetry' | 'resumer'
> {
  readonly coordination: Coordination;
  readonly leadership: Leadership;
}

/** Ends waits for events, in the process that leads: see {@link EventFollower}. */
export class EventMatching {
  readonly #options: MatchingOptions;
  readonly #parts: FollowerParts;
  readonly #work: PersistentWork;
  /** Set while this process leads. */
  #follower: EventFollower | null = null;

  constructor(options: MatchingOptions) {
    this.#options = options;
    const { store, queue, clock, telemetry, resumer, coordination } = options;
    const failure = 'could not end the wait for an event';
    this.#work = new PersistentWork({ clock, telemetry, failure });
    const shared = { store, queue, clock, telemetry, resumer, work: this.#work };
    const checkpoint = new LogCheckpoint(coordination, store, EVENTS_MATCHED_CHECKPOINT);
    this.#parts = { ...shared, checkpoint, conditions: new EventConditions(telemetry) };
    queue.subscribe({ onWaits: (run) => this.#follower?.take(run) });
  }

  /** Matches events while this process leads, until the signal is aborted. Rejects when the log fails. */
  async run(signal: AbortSignal): Promise<void> {
    const { leadership } = this.#options;
    while (!signal.aborted) {
      await leadership.untilLeading(signal);
      await leadership.whileLeading(signal, async ({ signal: ending }, fence) => {
        if (ending.aborted) return;
        const follower = (this.#follower = new EventFollower(this.#parts, ending, fence));
        try {
          await follower.follow();
        } catch (error) {
          if (!ending.aborted) throw error;
        } finally {
          this.#follower = null;
        }
      });
    }
  }

  /**
   * Whether a due wait for an event has reached its limit without a matching event; always true for other kinds of
   * waits. Only the leader can tell; other processes return false.
   * @throws EventStoreError
   */
  async isUnmet(_run: QueuedRun, { waits_for, wait_id }: Wait): Promise<boolean> {
    if (waits_for.kind !== 'event') return true;
    return (await this.#follower?.hasNone(wait_id)) ?? false;
  }

  /** Starts nothing more. Resolves when nothing is being written. Never rejects. */
  stop(): Promise<void> {
    return this.#work.stop();
  }
}
