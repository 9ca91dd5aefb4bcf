import type { Clock } from '../../domain/clock.ts';
import type { KeyName } from '../../domain/keys/key.ts';
import type { Telemetry } from '../../observability/telemetry.ts';

/** Pauses before a change of a key is tried again. After that, whoever wants the key mends it. Milliseconds. */
const PAUSES = [100, 300, 1000, 3000] as const;

/** Changes of keys that nobody waits for, but the end of the process. */
export class KeyErrands {
  private readonly clock: Clock;
  private readonly telemetry: Telemetry;
  private readonly inFlight = new Set<Promise<void>>();

  constructor(options: { readonly clock: Clock; readonly telemetry: Telemetry }) {
    this.clock = options.clock;
    this.telemetry = options.telemetry;
  }

  /** Lets something be done; it must not reject. */
  begin(doing: Promise<void>): void {
    this.inFlight.add(doing);
    void doing.finally(() => this.inFlight.delete(doing));
  }

  /** Resolves when all that has begun is done. Never rejects. */
  async settled(): Promise<void> {
    while (this.inFlight.size > 0) await Promise.all(this.inFlight);
  }

  /**
   * Does something, and again where it fails. Never rejects.
   *
   * @param about what it is for, for the log
   * @param name the key that it is to change; null where that shows as it is done
   */
  async persist(about: string, name: KeyName | null, work: () => Promise<void>): Promise<void> {
    for (const pause of [...PAUSES, null]) {
      try {
        await work();
        return;
      } catch (error) {
        if (pause === null) {
          const fields = { about, key: name?.key ?? null, error };
          const message = 'a key could not be changed; the next look at it mends that';
          this.telemetry.log.warn(message, fields);
          return;
        }
        await this.clock.sleep(pause);
      }
    }
  }
}
