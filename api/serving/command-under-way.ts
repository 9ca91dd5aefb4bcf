import type { Cancel, Clock } from '../../domain/clock.ts';
import { isConflict, type EventStore, type NewEvent } from '../../domain/event-store.ts';
import { UNDER_WAY_RENEWAL } from '../../domain/idempotency.ts';
import type { Log } from '../../observability/telemetry.ts';

interface UnderWayParts {
  readonly store: EventStore;
  readonly clock: Clock;
  readonly log: Log;
  /** Of its key. */
  readonly stream: string;
  /** What says that it was received, as of now. */
  readonly received: () => readonly NewEvent[];
}

/**
 * A keyed command that is carried out. It says again that it was received, for as long as that takes: to the other
 * processes it would else have died, and they would do a second time what takes long.
 */
export class CommandUnderWay {
  readonly #parts: UnderWayParts;
  #revision: number;
  #saying: Promise<void> = Promise.resolve();
  /** What was to be said, and may stand in the log or not. */
  #unsettled: readonly NewEvent[] | null = null;
  #cancel: Cancel = () => {};
  #over = false;

  /** @param revision of the event that said that it was received */
  constructor(parts: UnderWayParts, revision: number) {
    this.#parts = parts;
    this.#revision = revision;
    this.#wait();
  }

  /** It is carried out. @returns the revision of the last event that said that it goes on */
  async end(): Promise<number> {
    this.#over = true;
    this.#cancel();
    await this.#saying;
    if (this.#unsettled !== null) await this.#say();
    return this.#revision;
  }

  #wait(): void {
    const { clock } = this.#parts;
    const say = (): void => void (this.#saying = this.#say());
    this.#cancel = clock.after(UNDER_WAY_RENEWAL, say, { background: true });
  }

  async #say(): Promise<void> {
    const { store, log, stream, received } = this.#parts;
    this.#unsettled ??= received();
    try {
      this.#revision = (await store.append(stream, this.#unsettled, this.#revision)).revision;
      this.#unsettled = null;
    } catch (error) {
      // Another took it up, while this process could not say that it lives.
      if (isConflict(error)) this.#over = true;
      // Else the log can't be written: by nobody, who might take it up. The same is said again later.
      else log.warn('it could not be said that a command goes on', { stream, error });
    }
    if (!this.#over) this.#wait();
  }
}
