import type { KeyName } from '../../domain/keys/key.ts';
import type { SemaphoreParts } from './semaphore-parts.ts';

/** The message that reports a failure. */
const FAILURE = 'could not change a key; the next recheck repairs it';

/**
 * Pauses before a change is tried again. After the last pause, the next recheck of the key repairs it. Milliseconds.
 */
const PAUSES = [100, 300, 1000, 3000] as const;

/** Changes of keys that run in the background. Only the end of the process waits for them. */
export class PendingReleases {
  readonly #parts: Pick<SemaphoreParts, 'clock' | 'telemetry'>;
  readonly #pending = new Set<Promise<void>>();

  constructor(parts: Pick<SemaphoreParts, 'clock' | 'telemetry'>) {
    this.#parts = parts;
  }

  /** Starts a change and retries it when it fails. The parameters are those of {@link retry}. */
  start(about: string, name: KeyName | null, work: () => Promise<void>): void {
    this.track(this.retry(about, name, work));
  }

  /** Registers work in progress, which must not reject. */
  track(work: Promise<void>): void {
    this.#pending.add(work);
    void work.finally(() => this.#pending.delete(work));
  }

  /** Resolves when no change is pending. Never rejects. */
  async settled(): Promise<void> {
    while (this.#pending.size > 0) await Promise.all(this.#pending);
  }

  /**
   * Does a change, with a few retries. Never rejects.
   *
   * @param about for the log
   * @param name the key; null if only the work itself determines it
   */
  async retry(about: string, name: KeyName | null, work: () => Promise<void>): Promise<void> {
    const { clock, telemetry } = this.#parts;
    for (const pause of [...PAUSES, null]) {
      try {
        await work();
        return telemetry.failures.worked(FAILURE);
      } catch (error) {
        if (pause !== null) await clock.sleep(pause);
        else {
          telemetry.failures.failed(FAILURE, error, { about, key: name?.key ?? null });
        }
      }
    }
  }
}
