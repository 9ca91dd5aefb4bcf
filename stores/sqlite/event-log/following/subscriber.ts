import type { RecordedEvent } from '../../../../domain/event-store.ts';
import type { StreamShare } from '../../../../domain/stream-share.ts';

/** Events that may wait in memory for one slow subscriber; beyond, it reads them from the file later. */
const MAX_WAITING = 5_000;

/** A piece of the log on its way to one subscriber. */
export interface Delivery {
  readonly events: readonly RecordedEvent[];
  readonly upTo: number;
  /** Ends the subscription after the events. */
  readonly error: Error | undefined;
}

/**
 * One subscription's place in the log. While it is live, the tail hands it what is appended; while it is
 * not, it reads the file itself. Here nothing waits: {@link wait} is for who iterates.
 */
export class Subscriber {
  readonly prefixes: readonly string[] | undefined;
  /** What is in others is left out where it is read from the file. */
  readonly share: StreamShare | undefined;
  /** All up to here was taken by the consumer, or left out. */
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

  /** The tail's hand-over. One that finds the queue full drops it: the subscriber is live no more. */
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

  /** What has been handed over since the last time, as one; undefined when there is nothing. */
  take(): Delivery | undefined {
    const first = this.#queue[0];
    if (first === undefined) return undefined;
    const events = this.#queue.length === 1 ? first.events : this.#queue.flatMap((d) => d.events);
    const last = this.#queue.at(-1) ?? first;
    this.#queue.length = 0;
    this.#waiting = 0;
    // Joining may have overlapped with what was read from the file.
    const fresh =
      Number(events[0]?.position ?? Infinity) > this.position
        ? events
        : events.filter(({ position }) => Number(position) > this.position);
    this.position = Math.max(this.position, last.upTo);
    return { events: fresh, upTo: this.position, error: last.error };
  }

  /** Resolves at the next {@link wake}, or at once when there was one since the last time. */
  wait(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
      if (this.#woken) this.wake();
    });
  }

  /** Ends the wait: something was offered, or the subscription is to end. */
  wake(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    this.#woken = wake === undefined;
    wake?.();
  }
}
