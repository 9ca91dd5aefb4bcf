import {
  STREAM_NAME,
  type AllStreamResolvedEvent,
  type AllStreamSubscription,
  type Position as LogPosition,
} from '@eventstore/db-client';
import type { Position } from '../../domain/event-store.ts';
import type { Connection } from './connecting/connection.ts';
import { wordsOf } from './connecting/faults.ts';
import { fromPosition, isKnown, toPosition } from './position.ts';
import { eventOf, type ClientEvent } from './recorded.ts';

/** How many events are held here before the server is asked to wait. */
const BUFFER = 128;

/** A checkpoint for each so many pages (of 32 events) that the server has filtered out. */
const CHECKPOINT_INTERVAL = 4;

/**
 * One subscription of the client: events are taken out of it by hand, so that what is not taken holds
 * back the server. It does not come back by itself; whoever has it makes another one.
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
   * @param end where the log ended before this was made
   * @param prefixes see the port's `subscribe`
   * @param onLost called when it ends and was not closed, before anything else can go over another connection
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
            // Only noted, for an exception here would hang the subscription without a word.
            this.#note(place);
          },
        },
      },
      { highWaterMark: BUFFER },
    );
    // The listeners stay until the object is gone: an error without one would end the process.
    this.#subscription.on('error', (error) => this.#endBecause(wordsOf(error)));
    this.#subscription.on('end', () => this.#endBecause('the server ended it'));
    this.#subscription.on('close', () => this.#endBecause('it was closed'));
    this.#subscription.on('confirmation', () => this.wake());
    this.#subscription.on('caughtUp', () => {
      this.#keepsOrder = true;
      this.wake();
    });
    this.#subscription.on('readable', () => this.wake());
  }

  /** Why it ended, once it has; a clean end by the server is an end like others. */
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

  /**
   * A position up to which the server has passed everything on, where it has said one. True only once
   * all that is buffered has been taken.
   */
  takeHint(): Position | undefined {
    const hint = this.#hint;
    this.#hint = undefined;
    return hint;
  }

  /** Resolves when there may be something new, or after a time. */
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

  /** Ends a `wait`, now or as soon as it begins. */
  wake(): void {
    this.#awake = true;
    this.#wake();
  }

  /** Ends the subscription on the server too, which destroying the stream alone would not. */
  close(): void {
    this.#closed = true;
    this.#subscription.destroy();
    // Rejects only where the call was never made.
    this.#subscription.unsubscribe().catch(() => undefined);
  }

  /**
   * Servers before 23.10 (but for 22.10.4 and later) say of an event that comes while a subscription goes live that they
   * have passed it on, and only then pass it on: `PumpLiveMessages` of their Enumerators.AllSubscriptionFiltered sends
   * a checkpoint at the place where it begins. What stood in the log before the subscription was made is passed on in
   * order by all of them, and those that say when it has caught up, which 23.10 was the first to do, keep it after that.
   *
   * From 24.2 on they may fall behind a slow client and catch up anew. Where they then come to the end, those from 25.0 on
   * name where their last page began, which is behind the whole log where the page before ended with it; those before may
   * name none (-1), where they had passed on nothing yet. Who believed the first would be in a place that the log has not
   * come to, and be taken for a view of another one; who believed the second would pass over all that comes. Behind the
   * log no event stands, so of what came since only the place of one is believed.
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

/** Where an event stands that was committed by itself, as all are since 24.2; where a page begins is no such place. */
function mayBeOfAnEvent(place: LogPosition): boolean {
  return isKnown(place) && place.commit === place.prepare;
}

/**
 * By name of stream, on the server: either those that begin so, or all but the engine's own. An empty list matches
 * nothing, as it says. Not by the server's own prefixes: those it compares as people do (`StartsWith` without an ordinal
 * comparison, in `StreamIdPrefixStrategy` of its EventFilter). A name that goes on with a combining mark would never
 * come, and one that has a soft hyphen in its beginning would.
 */
function filterOf(prefixes: readonly string[] | undefined): { regex: string } {
  if (prefixes === undefined || prefixes.includes('')) return { regex: '^[^$]' };
  return { regex: prefixes.length === 0 ? '^$' : `^(?:${prefixes.map(toTheLetter).join('|')})` };
}

/** What means just this text in expressions of .NET: what might mean more stands there by its number in UTF-16. */
function toTheLetter(text: string): string {
  return text.replace(
    /[^\w-]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
