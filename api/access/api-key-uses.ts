import type { Cancel, Clock, Instant } from '../../domain/clock.ts';
import type { EventStore } from '../../domain/event-store.ts';
import { toNewEvents } from '../../domain/handle.ts';
import { newId } from '../../domain/ids.ts';
import { streams } from '../../domain/streams.ts';
import type { Telemetry } from '../../observability/telemetry.ts';

/** Each process records the use of a key at most once in this many milliseconds. */
const INTERVAL = 60_000;

/** How long a use may wait before it is appended. Milliseconds. */
const DELAY = 1000;

/**
 * The most keys whose last use is remembered. Beyond that, the oldest is forgotten, so its next use may be recorded
 * early.
 */
const MAX_REMEMBERED = 10_000;

/** The message that reports a failure. */
const FAILURE = 'could not record the use of an API key; retrying';

interface Use {
  readonly agentId: string;
  readonly address: string;
  readonly at: Instant;
}

/** Records when API keys are used. No request waits for it. */
export class ApiKeyUses {
  readonly #store: EventStore;
  readonly #clock: Clock;
  readonly #telemetry: Telemetry;
  /** When a use was last noted, by key. */
  readonly #noted = new Map<string, Instant>();
  readonly #waiting = new Map<string, Use>();
  #cancelFlush: Cancel | null = null;
  #flushing: Promise<void> = Promise.resolve();

  constructor(parts: {
    readonly store: EventStore;
    readonly clock: Clock;
    readonly telemetry: Telemetry;
  }) {
    this.#store = parts.store;
    this.#clock = parts.clock;
    this.#telemetry = parts.telemetry;
  }

  /** Notes a use. Returns at once and never fails. @param address of the client */
  note(keyId: string, agentId: string, address: string): void {
    const at = this.#clock.now();
    const last = this.#noted.get(keyId);
    // Compared in both directions, because the clock may have been set back.
    if (last !== undefined && Math.abs(at - last) < INTERVAL) return;
    this.#noted.delete(keyId);
    this.#noted.set(keyId, at);
    const [oldest] = this.#noted.keys();
    if (this.#noted.size > MAX_REMEMBERED && oldest !== undefined) this.#noted.delete(oldest);
    this.#waiting.set(keyId, { agentId, address, at });
    this.#scheduleFlush();
  }

  /** Appends the pending uses. Never rejects; uses that cannot be appended wait for the next flush. */
  flush(): Promise<void> {
    this.#flushing = this.#flushing.then(() => this.#append());
    return this.#flushing;
  }

  /** Appends the pending uses. Called after the last request. */
  close(): Promise<void> {
    this.#cancelFlush?.();
    return this.flush();
  }

  #scheduleFlush(): void {
    if (this.#cancelFlush !== null) return;
    const flush = (): void => {
      this.#cancelFlush = null;
      void this.flush().then(() => {
        if (this.#waiting.size > 0) this.#scheduleFlush();
      });
    };
    this.#cancelFlush = this.#clock.after(DELAY, flush, { background: true });
  }

  async #append(): Promise<void> {
    for (const [keyId, use] of [...this.#waiting]) {
      try {
        await this.#record(keyId, use);
        if (this.#waiting.get(keyId) === use) this.#waiting.delete(keyId);
        this.#telemetry.failures.worked(FAILURE);
      } catch (error) {
        this.#telemetry.failures.failed(FAILURE, error);
        return;
      }
    }
  }

  async #record(keyId: string, { agentId, address, at }: Use): Promise<void> {
    const stream = streams.apiKeyUse(keyId);
    const context = { actor: agentId, source: address, correlationId: keyId, now: at };
    const events = toNewEvents(stream, [{ type: 'ApiKeyUsed', data: {} }], {
      commandId: newId(at),
      ...context,
    });
    const { revision } = await this.#store.append(stream, events, 'any');
    // Only the last use counts.
    if (revision > 0) await this.#store.truncate(stream, revision);
  }
}
