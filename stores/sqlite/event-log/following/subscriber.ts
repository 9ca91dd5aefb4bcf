import type { RecordedEvent } from '../../../../domain/event-store.ts';
import type { StreamShare } from '../../../../domain/stream-share.ts';

/** Events that may wait in memory for a slow subscriber; beyond that it reads them from the file. */
const MAX_WAITING = 5_000;

/** A piece of the log for one subscriber. */
export interface Delivery {
  readonly events: readonly RecordedEvent[];
  readonly upTo: number;
  /** Ends the subscription after the events. */
  readonly error: Error | undefined;
}

/** One subscription's place in the log. While live it receives from the tail; otherwise it reads the file itself. */
export class Subscriber {
  readonly prefixes: readonly string[] | undefined;
  /** Streams of other shares are skipped when reading the file. */
  readonly share: StreamShare | undefined;
  /** Everything up to here was consumed or filtered out. */
  position: number;
  live = false;
  readonly #queue: Delivery[] = [];
  #waiting = 0;
  #wake: (() => void) | undefined;
  #woken = false;

  /** @param after the number of a position */
  constructor(
    after: number,
    wanted: { readonly prefixes?: readonly string[]; readonly share?: StreamShare | undefined },
  ) {
    this.position = after;
    this.prefixes = wanted.prefixes;
    this.share = wanted.share;
  }

  wants(stream: string): boolean {
    if (this.prefixes === undefined) return true;
    for (const prefix of this.prefixes) if (stream.startsWith(prefix)) return true;
    return false;
  }

  /** Receives from the tail. When the queue is full, it is dropped and the subscriber is no longer live. */
  offer(delivery: Delivery): void {
    if (delivery.upTo <= this.position && delivery.error === undefined) return;
    if (this.#waiting + delivery.events.length > MAX_WAITING) {
      this.#queue.length = 0;
      this.#waiting = 0;
      this.live = false;
    } else {
      this.#queue.push(delivery);
      this.#waiting += delivery.events.length;
    }
    this.wake();
  }

  /** Everything received since the last call, joined; undefined when there is nothing. */
  take(): Delivery | undefined {
    const first = this.#queue[0];
    if (first === undefined) return undefined;
    const events = this.#queue.length === 1 ? first.events : this.#queue.flatMap((d) => d.events);
    const last = this.#queue.at(-1) ?? first;
    this.#queue.length = 0;
    this.#waiting = 0;
    // What was read from the file may overlap.
    const fresh =
      Number(events[0]?.position ?? Infinity) > this.position
        ? events
        : events.filter(({ position }) => Number(position) > this.position);
    this.position = Math.max(this.position, last.upTo);
    return { events: fresh, upTo: this.position, error: last.error };
  }

  /** Resolves at the next {@link wake}, or at once if one came since the last time. */
  wait(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
      if (this.#woken) this.wake();
    });
  }

  /** Ends the wait: something was offered, or the subscription ends. */
  wake(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    this.#woken = wake === undefined;
    wake?.();
  }
}
