import {
  STREAM_NAME,
  type AllStreamResolvedEvent,
  type AllStreamSubscription,
  type Position as LogPosition,
} from '@eventstore/db-client';
import type { Position } from '../../domain/event-store.ts';
import type { Connection } from './connecting/connection.ts';
import { describeError } from './connecting/client-errors.ts';
import { fromPosition, isKnown, toPosition } from './position.ts';
import { eventOf, type ClientEvent } from './client-event.ts';

/** Events buffered here before the server has to wait. */
const BUFFER = 128;

/** The server sends a checkpoint after this many filtered pages (of 32 events). */
const CHECKPOINT_INTERVAL = 4;

/**
 * One subscription of the client. Events are pulled, so an idle consumer holds back the server. It does not reconnect;
 * its owner makes another one.
 */
export class Feed {
  readonly #subscription: AllStreamSubscription;
  readonly #end: Position;
  #ended: string | undefined;
  #hint: Position | undefined;
  #keepsOrder = false;
  #awake = false;
  #closed = false;
  readonly #onLost: () => void;
  #wake: () => void = () => undefined;

  /**
   * @param end where the log ended before this subscription began
   * @param prefixes see the port's `subscribe`
   * @param onLost called when it ends without being closed, before another connection is used
   */
  constructor(
    connection: Connection,
    after: Position,
    end: Position,
    prefixes: readonly string[] | undefined,
    onLost: () => void,
  ) {
    this.#onLost = onLost;
    this.#end = end;
    this.#subscription = connection.subscribeToAll(
      {
        fromPosition: fromPosition(after),
        filter: {
          filterOn: STREAM_NAME,
          checkpointInterval: CHECKPOINT_INTERVAL,
          ...filterOf(prefixes),
          checkpointReached: (_subscription, place) => {
            // Only noted: an exception here would silently hang the subscription.
            this.#note(place);
          },
        },
      },
      { highWaterMark: BUFFER },
    );
    // The listeners stay: an error without one would end the process.
    this.#subscription.on('error', (error) => this.#endBecause(describeError(error)));
    this.#subscription.on('end', () => this.#endBecause('the server ended it'));
    this.#subscription.on('close', () => this.#endBecause('it was closed'));
    this.#subscription.on('confirmation', () => this.wake());
    this.#subscription.on('caughtUp', () => {
      this.#keepsOrder = true;
      this.wake();
    });
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

  /** A position up to which the server has sent everything. Valid only once the buffer is empty. */
  takeHint(): Position | undefined {
    const hint = this.#hint;
    this.#hint = undefined;
    return hint;
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

  /**
   * Notes a checkpoint, unless it may be wrong. Servers before 23.10 (except 22.10.4 and later) may send a checkpoint
   * before the event at its place, when a subscription goes live (`PumpLiveMessages` in
   * Enumerators.AllSubscriptionFiltered). Events from before the subscription come in order on all servers. Servers that
   * announce `caughtUp`, from 23.10 on, keep the order after it.
   *
   * From 24.2 on, servers may fall behind a slow client and catch up again. They may then name the start of their last
   * page, which can lie behind the whole log (25.0), or no place at all (-1). So a checkpoint beyond the initial end
   * counts only if it can be the place of an event.
   */
  #note(place: LogPosition): void {
    const hint = toPosition(place);
    if (hint > this.#end && !(this.#keepsOrder && mayBeOfAnEvent(place))) return;
    this.#hint = hint;
    this.wake();
  }

  #endBecause(reason: string): void {
    if (this.#ended === undefined && !this.#closed) this.#onLost();
    this.#ended ??= reason;
    this.wake();
  }
}

/** Whether an event can stand at this place. Since 24.2 each is committed by itself, so both numbers are equal. */
function mayBeOfAnEvent(place: LogPosition): boolean {
  return isKnown(place) && place.commit === place.prepare;
}

/**
 * The server-side filter by stream name: the given prefixes, or all but the engine's own streams. An empty list matches
 * nothing. The server's own prefix filter is not used: it compares by culture (`StartsWith` in `StreamIdPrefixStrategy`),
 * so it misses names that go on with a combining mark, and accepts soft hyphens.
 */
function filterOf(prefixes: readonly string[] | undefined): { regex: string } {
  if (prefixes === undefined || prefixes.includes('')) return { regex: '^[^$]' };
  return {
    regex: prefixes.length === 0 ? '^$' : `^(?:${prefixes.map(escapedForDotNet).join('|')})`,
  };
}

/** Escapes a string for a regular expression of .NET. */
function escapedForDotNet(name: string): string {
  return name.replace(
    /[^\w-]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
