import type { Clock } from '../../../domain/clock.ts';
import type { EventStore, Position, RecordedEvent } from '../../../domain/event-store.ts';
import { placeInLog, rememberEvent } from '../../../domain/remembered-event.ts';
import type { TopicPattern } from '../../../domain/schedule/topic-pattern.ts';
import { streamIdOf } from '../../../domain/topics/topic.ts';
import type { Telemetry } from '../../../observability/telemetry.ts';
import type { Coordination } from '../../../scheduler/coordination.ts';
import type { TopicEventView } from '../../contract.ts';
import type { WorkItem } from '../leased-work.ts';

/**
 * Pauses before a failed event is delivered again, in milliseconds. After the last, the next event
 * follows.
 */
const RETRY_PAUSES_MS = [100, 500, 2_000, 5_000] as const;

/** Pause before following is resumed after an error, in milliseconds. */
const RESTART_PAUSE_MS = 1_000;

/** Minimum interval for saving the position when no event was handled, in milliseconds. */
const SAVE_INTERVAL_MS = 1_000;

/** Prefix of a saved position, which is empty for an empty log. */
const POSITION_PREFIX = 'at ';
const NO_POSITION = 'none';

/** Delivers the events of some topics to a handler, one at a time, from the last saved position. */
export class Subscription implements WorkItem {
  readonly label: string;
  readonly #name: string;
  readonly #pattern: TopicPattern;
  readonly #handle: (event: TopicEventView, signal: AbortSignal) => Promise<void>;
  readonly #onError: (error: unknown) => void;
  readonly #store: EventStore;
  readonly #coordination: Coordination;
  readonly #clock: Clock;
  readonly #telemetry: Telemetry;
  #fence = 0;
  /** Start position until one is saved. */
  #startPosition: Position | null = null;
  #savedPosition: Position | null = null;
  /** The last event seen. It identifies the log of the saved position. */
  #lastEvent: RecordedEvent | null = null;
  #savedAt = 0;
  #isForgotten = false;

  constructor(options: {
    /** As the status names it. */
    readonly what: string;
    /** Key of its saved position. */
    readonly name: string;
    readonly pattern: TopicPattern;
    readonly handle: (event: TopicEventView, signal: AbortSignal) => Promise<void>;
    readonly onError: (error: unknown) => void;
    readonly store: EventStore;
    readonly coordination: Coordination;
    readonly clock: Clock;
    readonly telemetry: Telemetry;
  }) {
    this.label = options.what;
    this.#name = options.name;
    this.#pattern = options.pattern;
    this.#handle = options.handle;
    this.#onError = options.onError;
    this.#store = options.store;
    this.#coordination = options.coordination;
    this.#clock = options.clock;
    this.#telemetry = options.telemetry;
  }

  /** Fixes the start position if none is saved: events published from now on are handled. */
  async fixStart(): Promise<void> {
    if ((await this.#savedPlace()) !== null) return;
    this.#startPosition = await this.#store.head();
    // After a reset by a lease holder, this write is ignored and the position is known here only.
    await rememberEvent(this.#coordination, this.#store, this.#name, this.#startPosition, null, 0);
    await this.#coordination.remember(this.#name, POSITION_PREFIX + this.#startPosition, 0);
  }

  async run(signal: AbortSignal, fence: number): Promise<void> {
    this.#fence = fence;
    while (!signal.aborted) {
      try {
        await this.#follow(signal);
      } catch (error) {
        if (signal.aborted) return;
        const fields = { subscription: this.#name, error };
        this.#telemetry.log.warn('extension subscription failed; resuming', fields);
        await this.#clock.sleep(RESTART_PAUSE_MS, signal).catch(() => {});
      }
    }
  }

  /** Deletes the saved position. */
  async forget(): Promise<void> {
    this.#isForgotten = true;
    await this.#coordination.remember(this.#name, NO_POSITION, this.#fence);
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const known = (await this.#savedPlace()) ?? this.#startPosition;
    let after =
      (known === null ? null : await this.#placeInLog(known)) ?? (await this.#store.head());
    for await (const message of this.#store.subscribe({ after, prefixes: ['topic-'], signal })) {
      if (message.kind === 'caught-up') {
        after = message.position;
        await this.#save(after, false);
        continue;
      }
      let handled = false;
      for (const event of message.events) {
        if (signal.aborted) break;
        handled = (await this.#deliver(event, signal)) || handled;
        if (signal.aborted) break;
        after = event.position;
        this.#lastEvent = event;
      }
      await this.#save(after, handled);
    }
    await this.#save(after, true);
  }

  /** @returns whether the event was for the handler */
  async #deliver(event: RecordedEvent, signal: AbortSignal): Promise<boolean> {
    if (event.fault !== undefined || event.type !== 'EventPublished') return false;
    const { event_id, topic, payload, source_agent_id, published_at } = event.data;
    if (!this.#pattern.matches(topic)) return false;
    const view: TopicEventView = {
      id: event_id,
      stream_id: streamIdOf(published_at, event.revision),
      topic,
      data: payload,
      source_agent_id,
      published_at,
    };
    for (let tries = 0; !signal.aborted; tries += 1) {
      try {
        await this.#handle(view, signal);
        return true;
      } catch (error) {
        this.#onError(error);
        const pause = RETRY_PAUSES_MS[tries];
        if (pause === undefined) return true;
        await this.#clock.sleep(pause, signal).catch(() => {});
      }
    }
    return true;
  }

  /** null if the log was replaced by another or an older copy. */
  #placeInLog(place: Position): Promise<Position | null> {
    return placeInLog(this.#coordination, this.#store, this.#name, place);
  }

  async #savedPlace(): Promise<Position | null> {
    const saved = await this.#coordination.recall(this.#name);
    return saved?.startsWith(POSITION_PREFIX) ? saved.slice(POSITION_PREFIX.length) : null;
  }

  async #save(position: Position, handled: boolean): Promise<void> {
    // The handler may end long after it was unsubscribed.
    if (position === this.#savedPosition || this.#isForgotten) return;
    const now = this.#clock.now();
    if (!handled && Math.abs(now - this.#savedAt) < SAVE_INTERVAL_MS) return;
    const fence = this.#fence;
    await rememberEvent(
      this.#coordination,
      this.#store,
      this.#name,
      position,
      this.#lastEvent,
      fence,
    );
    await this.#coordination.remember(this.#name, POSITION_PREFIX + position, fence);
    this.#savedPosition = position;
    this.#savedAt = now;
  }
}
