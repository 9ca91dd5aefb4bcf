import type { Cancel, Clock } from '../../domain/clock.ts';
import { joinedBytes, type Frame, type LiveClient } from '../client/live-client.ts';

/** Clients that are written to in one turn of the event loop; other requests come in between. */
const IN_A_TURN = 50;

/**
 * A thousand clients are a thousand writes, tens of microseconds each. What comes while they are being written, and
 * for a while after it, goes out together in the next round: the while is this many times as long as the round took,
 * within bounds in milliseconds.
 */
const REST = 3;
const LEAST_REST = 10;
const MOST_REST = 400;

/** Sends changes to all who are level, so that however much happens, other requests have their share of the process. */
export class LiveSending {
  readonly #clock: Clock;
  readonly #clients: ReadonlySet<LiveClient>;
  #unsent: Frame[] = [];
  /** A round is under way, or its rest. */
  #busy = false;
  #forget: Cancel = () => {};
  /** Counts up when what is under way is to go no further. */
  #generation = 0;

  constructor(clock: Clock, clients: ReadonlySet<LiveClient>) {
    this.#clock = clock;
    this.#clients = clients;
  }

  /** Whether all that was added has been sent to everybody. */
  get isEmpty(): boolean {
    return this.#unsent.length === 0 && !this.#busy;
  }

  /** At once where nothing is under way, else in the next round. */
  add(frames: readonly Frame[]): void {
    if (frames.length === 0) return;
    this.#unsent.push(...frames);
    if (!this.#busy) void this.#round();
  }

  /** Forgets what has not been sent. Clients know how far each of them is. */
  clear(): void {
    this.#generation += 1;
    this.#unsent = [];
    this.#busy = false;
    this.#forget();
  }

  async #round(): Promise<void> {
    const generation = this.#generation;
    this.#busy = true;
    const frames = this.#unsent;
    this.#unsent = [];
    let bytes: Buffer | undefined;
    const joined = (): Buffer => (bytes ??= joinedBytes(frames));
    let took = 0;
    const clients = [...this.#clients];
    for (let from = 0; from < clients.length; from += IN_A_TURN) {
      if (from > 0) await new Promise<void>((resolve) => setImmediate(resolve));
      if (generation !== this.#generation) return;
      const begun = performance.now();
      for (const client of clients.slice(from, from + IN_A_TURN)) client.send(frames, joined);
      took += performance.now() - begun;
    }
    const rest = Math.min(MOST_REST, Math.max(LEAST_REST, REST * took));
    this.#forget = this.#clock.after(
      rest,
      () => {
        this.#busy = false;
        if (this.#unsent.length > 0) void this.#round();
      },
      { background: true },
    );
  }
}
