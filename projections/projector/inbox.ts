import type { Clock } from '../../domain/clock.ts';
import type { Position, RecordedEvent, SubscriptionMessage } from '../../domain/event-store.ts';

/** The most events that are joined into a batch. */
const MAX_EVENTS = 2_000;
/** How many turns of the microtask queue the inbox waits for a message that needs no I/O. */
const TURNS = 40;

/** The events that a view applies in one step. */
export interface Batch {
  readonly events: readonly RecordedEvent[];
  /** The batch contains all of this view's events up to this position. */
  readonly upTo: Position;
  /** Whether this position was the end of the log. */
  readonly isLevel: boolean;
}

/** A view's subscription to the log. It can wait for a limited time, and join several messages into a batch. */
export class Inbox {
  readonly #clock: Clock;
  readonly #messages: AsyncIterator<SubscriptionMessage>;
  /** The next message, while the inbox waits for it. */
  #next: Promise<IteratorResult<SubscriptionMessage>> | null = null;
  /** Events that were received but not taken yet. */
  #events: RecordedEvent[] = [];
  #upTo: Position | null = null;
  #isLevel = false;

  constructor(messages: AsyncIterable<SubscriptionMessage>, clock: Clock) {
    this.#messages = messages[Symbol.asyncIterator]();
    this.#clock = clock;
  }

  /**
   * The next batch, starting with events that were already received.
   * @param patience milliseconds to wait at most
   * @throws errors of the subscription
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
   * Waits so that a view applies several events together: until enough have arrived, no more arrive, or the time is
   * over.
   *
   * @param options.events how many are enough
   * @param options.patience milliseconds to wait at most
   * @param options.quiet milliseconds without an event after which it stops waiting
   * @throws errors of the subscription
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
    // If the view stops because of an error, that error is the one to report.
    await this.#next?.catch(() => undefined);
    await this.#messages.return?.();
  }

  /** Receives everything that has already arrived, perhaps while the view was writing. */
  async #receiveWaiting(): Promise<void> {
    while (this.#events.length < MAX_EVENTS) {
      let settled: IteratorResult<SubscriptionMessage> | null = null;
      const next = (this.#next ??= this.#messages.next());
      next.then(
        (result) => (settled = result),
        // The next call throws this error, after these events were taken.
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

  /** A promise's outcome, or null after a time limit. */
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
