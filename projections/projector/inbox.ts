import type { Clock } from '../../domain/clock.ts';
import type { Position, RecordedEvent, SubscriptionMessage } from '../../domain/event-store.ts';

/** Events after which no more messages are joined. */
const MAX_EVENTS = 2_000;
/** Turns of the queue of promises within which a message arrives that needs no I/O. */
const TURNS = 40;

/** What a view takes in one step. */
export interface Batch {
  readonly events: readonly RecordedEvent[];
  /** Everything up to here is among the events, or is of other views. */
  readonly upTo: Position;
  /** Whether that was the end of the log. */
  readonly isLevel: boolean;
}

/**
 * What a view receives of the log: a subscription that can be waited for with patience, and whose messages can be
 * gathered.
 */
export class Inbox {
  readonly #clock: Clock;
  readonly #messages: AsyncIterator<SubscriptionMessage>;
  /** The next message, while it is waited for. */
  #next: Promise<IteratorResult<SubscriptionMessage>> | null = null;
  /** What was gathered, and not taken yet. */
  #events: RecordedEvent[] = [];
  #upTo: Position | null = null;
  #isLevel = false;

  constructor(messages: AsyncIterable<SubscriptionMessage>, clock: Clock) {
    this.#messages = messages[Symbol.asyncIterator]();
    this.#clock = clock;
  }

  /**
   * The next batch; what was gathered comes first.
   * @param patience milliseconds to wait at most
   * @throws what the subscription throws
   */
  async next(patience: number): Promise<Batch | 'quiet' | 'ended'> {
    if (this.#upTo === null) {
      const received = await this.#receive(patience);
      if (received !== 'more') return received;
    }
    await this.#receiveWaiting();
    const batch = { events: this.#events, upTo: this.#upTo ?? '', isLevel: this.#isLevel };
    this.#events = [];
    this.#upTo = null;
    return batch;
  }

  /**
   * Waits until enough events have come, or the time is over, or no more come, so that a view takes them together.
   *
   * @param options.events how many are enough
   * @param options.patience milliseconds to wait at most
   * @param options.quiet milliseconds without an event after which it stops waiting
   * @throws what the subscription throws
   */
  async gather(options: {
    readonly events: number;
    readonly patience: number;
    readonly quiet: number;
  }): Promise<void> {
    const until = this.#clock.steady() + options.patience;
    let quietAt = this.#clock.steady() + options.quiet;
    while (this.#events.length < options.events) {
      const before = this.#events.length;
      const now = this.#clock.steady();
      if ((await this.#receive(Math.min(until, quietAt) - now)) !== 'more') return;
      if (this.#events.length > before) quietAt = this.#clock.steady() + options.quiet;
    }
  }

  /** Call it when the subscription's signal has been aborted, or when it has thrown. */
  async end(): Promise<void> {
    // A view that leaves because of an error has its own reason already.
    await this.#next?.catch(() => undefined);
    await this.#messages.return?.();
  }

  /** Receives what is there already: the message waited for may have come long ago, while the view wrote. */
  async #receiveWaiting(): Promise<void> {
    while (this.#events.length < MAX_EVENTS) {
      let settled: IteratorResult<SubscriptionMessage> | null = null;
      const next = (this.#next ??= this.#messages.next());
      next.then(
        (result) => (settled = result),
        // Thrown by the next call, after these events.
        () => undefined,
      );
      for (let turn = 0; turn < TURNS && settled === null; turn += 1) await Promise.resolve();
      const result = settled as IteratorResult<SubscriptionMessage> | null;
      if (result === null || result.done === true) return;
      this.#next = null;
      this.#add(result.value);
    }
  }

  async #receive(patience: number): Promise<'more' | 'quiet' | 'ended'> {
    const next = (this.#next ??= this.#messages.next());
    const result = await this.#within(next, patience);
    if (result === null) return 'quiet';
    this.#next = null;
    if (result.done === true) return 'ended';
    this.#add(result.value);
    return 'more';
  }

  #add(message: SubscriptionMessage): void {
    this.#isLevel = message.kind === 'caught-up';
    if (message.kind === 'caught-up') {
      this.#upTo = message.position;
    } else {
      this.#upTo = message.events.at(-1)?.position ?? this.#upTo;
      if (this.#events.length === 0) this.#events = [...message.events];
      else for (const event of message.events) this.#events.push(event);
    }
  }

  /** A promise's outcome; null when the time is over first. */
  #within<T>(promise: Promise<T>, milliseconds: number): Promise<T | null> {
    return new Promise((resolve, reject) => {
      const cancel = this.#clock.after(Math.max(0, milliseconds), () => resolve(null));
      promise.then(
        (value) => {
          cancel();
          resolve(value);
        },
        (error: unknown) => {
          cancel();
          reject(error instanceof Error ? error : new Error(String(error)));
        },
      );
    });
  }
}
