import type { Cancel, Clock } from '../../domain/clock.ts';
import { isConflict, type EventStore, type NewEvent } from '../../domain/event-store.ts';
import { RENEWAL_INTERVAL } from '../../domain/idempotency.ts';
import type { Failures } from '../../observability/telemetry.ts';

/** The message that reports a failure. */
const NOT_RECORDED = "could not record the command's progress";

interface RenewalOptions {
  readonly store: EventStore;
  readonly clock: Clock;
  readonly failures: Failures;
  /** The stream of the Idempotency-Key. */
  readonly stream: string;
  /** The event which says that the command was received at the present time. */
  readonly received: () => readonly NewEvent[];
}

/**
 * Renews the record of a keyed command while it runs. Otherwise, other processes would assume that its process has
 * died, and would run it a second time.
 */
export class CommandRenewal {
  readonly #options: RenewalOptions;
  #revision: number;
  #renewing: Promise<void> = Promise.resolve();
  /** Events whose append failed. They may be in the log nevertheless. */
  #unconfirmed: readonly NewEvent[] | null = null;
  #cancel: Cancel = () => {};
  #ended = false;

  /** @param revision of the event that first recorded the command */
  constructor(options: RenewalOptions, revision: number) {
    this.#options = options;
    this.#revision = revision;
    this.#schedule();
  }

  /** Ends the renewal. @returns the revision of the last event */
  async end(): Promise<number> {
    this.#ended = true;
    this.#cancel();
    await this.#renewing;
    if (this.#unconfirmed !== null) await this.#renew();
    return this.#revision;
  }

  #schedule(): void {
    const renew = (): void => void (this.#renewing = this.#renew());
    this.#cancel = this.#options.clock.after(RENEWAL_INTERVAL, renew, { background: true });
  }

  async #renew(): Promise<void> {
    const { store, failures, stream, received } = this.#options;
    this.#unconfirmed ??= received();
    try {
      this.#revision = (await store.append(stream, this.#unconfirmed, this.#revision)).revision;
      this.#unconfirmed = null;
      failures.worked(NOT_RECORDED);
    } catch (error) {
      // Another process took the command over, because this process could not renew it in time.
      if (isConflict(error)) this.#ended = true;
      // While no process can write to the log, none can take over. The same events are appended
      // later.
      else failures.failed(NOT_RECORDED, error, { stream });
    }
    if (!this.#ended) this.#schedule();
  }
}
