import {
  STREAM_NAME,
  type AllStreamResolvedEvent,
  type AllStreamSubscription,
} from '@eventstore/db-client';
import type { Position } from '../../domain/event-store.ts';
import type { Connection } from './connecting/connection.ts';
import { describeError } from './connecting/client-errors.ts';
import { fromPosition } from './position.ts';
import { eventOf, type ClientEvent } from './client-event.ts';

/** The most events buffered here before the server has to wait. */
const BUFFER = 512;

/** All streams except the engine's own, filtered by the server. */
const NOT_OF_THE_ENGINE = '^[^$]';

/**
 * A server sends its position after this many pages of 32 events without a wanted event. The interval is long because
 * these positions are not used: some servers send one before the event at it, or one beyond the end of the log.
 */
const CHECKPOINT_INTERVAL = 1_000;

/**
 * A single subscription of the client to the end of the log. Events are pulled. It does not reconnect; its owner
 * creates another one.
 */
export class Feed {
  readonly #subscription: AllStreamSubscription;
  #ended: string | undefined;
  #awake = false;
  #closed = false;
  readonly #onLost: () => void;
  #wake: () => void = () => undefined;

  /** @param onLost called when it ends without having been closed, before another connection is used */
  constructor(connection: Connection, after: Position, onLost: () => void) {
    this.#onLost = onLost;
    this.#subscription = connection.subscribeToAll(
      {
        fromPosition: fromPosition(after),
        filter: {
          filterOn: STREAM_NAME,
          regex: NOT_OF_THE_ENGINE,
          checkpointInterval: CHECKPOINT_INTERVAL,
        },
      },
      { highWaterMark: BUFFER },
    );
    // The listeners stay: an error without one would end the process.
    this.#subscription.on('error', (error) => this.#endBecause(describeError(error)));
    this.#subscription.on('end', () => this.#endBecause('the server ended it'));
    this.#subscription.on('close', () => this.#endBecause('it was closed'));
    this.#subscription.on('readable', () => this.wake());
  }

  /** Why it ended, once it has. The server may also end it without an error. */
  get ended(): string | undefined {
    return this.#ended;
  }

  /** Everything buffered, at most what the buffer holds, oldest first. */
  take(): readonly ClientEvent[] {
    const events: ClientEvent[] = [];
    while (events.length < BUFFER) {
      const resolved = this.#subscription.read() as AllStreamResolvedEvent | null;
      if (resolved === null) break;
      const event = eventOf(resolved);
      if (event !== undefined) events.push(event);
    }
    return events;
  }

  /** Resolves when there may be something new, or after a timeout. */
  async wait(milliseconds: number): Promise<void> {
    if (!this.#awake) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, Math.max(0, milliseconds));
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    this.#awake = false;
    this.#wake = () => undefined;
  }

  /** Ends the current or the next `wait`. */
  wake(): void {
    this.#awake = true;
    this.#wake();
  }

  /** Also ends the subscription on the server, which destroying the stream would not. */
  close(): void {
    this.#closed = true;
    this.#subscription.destroy();
    // Rejects only if the call was never made.
    this.#subscription.unsubscribe().catch(() => undefined);
  }

  #endBecause(reason: string): void {
    if (this.#ended === undefined && !this.#closed) this.#onLost();
    this.#ended ??= reason;
    this.wake();
  }
}
