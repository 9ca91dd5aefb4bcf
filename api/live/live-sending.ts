import type { Cancel, Clock } from '../../domain/clock.ts';
import { reaches, type Reach } from '../../projections/reach.ts';
import { joinedBytes, type Frame, type LiveClient } from './live-client.ts';

/** Clients that are written to in one turn of the event loop. */
const CLIENTS_PER_TURN = 50;

/** A pause after each round of writes lasts this many times as long as the round, within bounds in milliseconds. */
const PAUSE_FACTOR = 3;
const MIN_PAUSE = 10;
const MAX_PAUSE = 400;

/** Sends changes to all clients in rounds with pauses, so that other requests get their share of the process. */
export class LiveSending {
  readonly #clock: Clock;
  readonly #clients: ReadonlySet<LiveClient>;
  #unsent: Frame[] = [];
  /** A round is running, or its pause. */
  #busy = false;
  #forget: Cancel = () => {};
  /** Increases when the running round must stop. */
  #generation = 0;

  constructor(clock: Clock, clients: ReadonlySet<LiveClient>) {
    this.#clock = clock;
    this.#clients = clients;
  }

  /** Whether all clients have received all changes. */
  get isEmpty(): boolean {
    return this.#unsent.length === 0 && !this.#busy;
  }

  /** Sends changes at once, or in the next round. */
  add(frames: readonly Frame[]): void {
    if (frames.length === 0) return;
    this.#unsent.push(...frames);
    if (!this.#busy) void this.#round();
  }

  /** Drops unsent changes. Each client knows its own position. */
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
    const byReach = new Map<Reach, Buffer>();
    const joined = (reach: Reach): Buffer => {
      const known = byReach.get(reach);
      if (known !== undefined) return known;
      const bytes = joinedBytes(frames.filter(({ namespace }) => reaches(reach, namespace)));
      byReach.set(reach, bytes);
      return bytes;
    };
    let took = 0;
    const clients = [...this.#clients];
    for (let from = 0; from < clients.length; from += CLIENTS_PER_TURN) {
      if (from > 0) await new Promise<void>((resolve) => setImmediate(resolve));
      if (generation !== this.#generation) return;
      const begun = performance.now();
      for (const client of clients.slice(from, from + CLIENTS_PER_TURN)) {
        client.send(frames, joined);
      }
      took += performance.now() - begun;
    }
    const pause = Math.min(MAX_PAUSE, Math.max(MIN_PAUSE, PAUSE_FACTOR * took));
    const next = (): void => {
      this.#busy = false;
      if (this.#unsent.length > 0) void this.#round();
    };
    this.#forget = this.#clock.after(pause, next, { background: true });
  }
}
