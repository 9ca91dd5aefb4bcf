import type { EventStore, Position } from '../../domain/event-store.ts';

/**
 * Looks up the head of the log for any number of callers at once. Each gets the result of a read that started after its
 * call.
 */
export class LatestHead {
  readonly #store: Pick<EventStore, 'head'>;
  #running: Promise<Position> | undefined;
  #next: Promise<Position> | undefined;

  constructor(store: Pick<EventStore, 'head'>) {
    this.#store = store;
  }

  /** @throws EventStoreError `UNAVAILABLE` */
  read(): Promise<Position> {
    const running = this.#running;
    if (running === undefined) return this.#start();
    this.#next ??= running.then(
      () => this.#start(),
      () => this.#start(),
    );
    return this.#next;
  }

  #start(): Promise<Position> {
    this.#next = undefined;
    const reading = this.#store.head().finally(() => {
      if (this.#running === reading) this.#running = undefined;
    });
    this.#running = reading;
    return reading;
  }
}
