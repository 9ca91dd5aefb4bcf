import type { Clock } from '../../../domain/clock.ts';
import type { EventStore, Position, RecordedEvent } from '../../../domain/event-store.ts';
import { resumePosition, rememberLandmark } from '../../../domain/log-landmark.ts';
import { DEFAULT_NAMESPACE, namespaceOf } from '../../../domain/namespaces/namespace.ts';
import type { TopicPattern } from '../../../domain/schedule/topic-pattern.ts';
import { streamIdOf } from '../../../domain/topics/topic.ts';
import type { Telemetry } from '../../../observability/telemetry.ts';
import type { Coordination } from '../../../scheduler/coordination.ts';
import type { TopicEventView } from '../../contract.ts';
import type { WorkItem } from '../leased-work.ts';
import type { RetriedWork } from '../retried-work.ts';

/** The message that reports a failure. */
const FAILURE = 'extension subscription failed; resuming';

/** Pauses before a failed event is delivered again, in milliseconds. After the last, the next event follows. */
const RETRY_PAUSES_MS = [100, 500, 2_000, 5_000] as const;

/** Pause before following is resumed after an error, in milliseconds. */
const RESTART_PAUSE_MS = 1_000;

/** Minimum interval for saving the position when no event was handled, in milliseconds. */
const SAVE_INTERVAL_MS = 1_000;

/** Prefix of a saved position, which is empty for an empty log. */
const POSITION_PREFIX = 'at ';
const NO_POSITION = 'none';

export interface SubscriptionOptions {
  /** Its name in the status. */
  readonly label: string;
  /** Key of its saved position. */
  readonly name: string;
  readonly pattern: TopicPattern;
  /** @param published the same event, as it is in the log */
  readonly handle: (
    event: TopicEventView,
    signal: AbortSignal,
    published: RecordedEvent,
  ) => Promise<void>;
  /** Reports how the handling of events goes. */
  readonly handling: RetriedWork;
  readonly store: EventStore;
  readonly coordination: Coordination;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
}

/** Delivers the events of some topics to a handler, one at a time, from the last saved position. */
export class Subscription implements WorkItem {
  readonly label: string;
  readonly #options: SubscriptionOptions;
  #fence = 0;
  /** Start position until one is saved. */
  #startPosition: Position | null = null;
  #savedPosition: Position | null = null;
  /** The last event seen. It identifies the log of the saved position. */
  #lastEvent: RecordedEvent | null = null;
  #savedAt = 0;
  #isForgotten = false;

  constructor(options: SubscriptionOptions) {
    this.label = options.label;
    this.#options = options;
  }

  /** Fixes the start position if none is saved: events published from now on are handled. */
  async fixStart(): Promise<void> {
    if ((await this.#savedPlace()) !== null) return;
    this.#startPosition = await this.#options.store.head();
    // After a reset by a lease holder, this write is ignored and the position is known here only.
    await this.#write(this.#startPosition, null, 0);
  }

  async run(signal: AbortSignal, fence: number): Promise<void> {
    this.#fence = fence;
    while (!signal.aborted) {
      try {
        await this.#follow(signal);
      } catch (error) {
        if (signal.aborted) return;
        const { name: subscription, telemetry, clock } = this.#options;
        telemetry.failures.failed(FAILURE, error, { subscription });
        await clock.sleep(RESTART_PAUSE_MS, signal).catch(() => {});
      }
    }
  }

  /** Deletes the saved position. */
  async forget(): Promise<void> {
    this.#isForgotten = true;
    await this.#options.coordination.remember(this.#options.name, NO_POSITION, this.#fence);
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const { coordination, store, name, telemetry } = this.#options;
    const known = (await this.#savedPlace()) ?? this.#startPosition;
    // No position in this log if it was replaced by another or an older copy.
    const place = known === null ? null : await resumePosition(coordination, store, name, known);
    let after = place ?? (await store.head());
    for await (const message of store.subscribe({ after, prefixes: ['topic-'], signal })) {
      telemetry.failures.worked(FAILURE);
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
    // The extension's agent is in the default namespace, so the extension receives no other events.
    if (namespaceOf(event.data) !== DEFAULT_NAMESPACE) return false;
    const { event_id, topic, payload, source_agent_id, published_at } = event.data;
    if (!this.#options.pattern.matches(topic)) return false;
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
        await this.#options.handle(view, signal, event);
        this.#options.handling.worked();
        return true;
      } catch (error) {
        this.#options.handling.failed(error, { event: event_id });
        const pause = RETRY_PAUSES_MS[tries];
        if (pause === undefined) return true;
        await this.#options.clock.sleep(pause, signal).catch(() => {});
      }
    }
    return true;
  }

  async #savedPlace(): Promise<Position | null> {
    const saved = await this.#options.coordination.recall(this.#options.name);
    return saved?.startsWith(POSITION_PREFIX) ? saved.slice(POSITION_PREFIX.length) : null;
  }

  async #save(position: Position, handled: boolean): Promise<void> {
    // A handler may end after it was unsubscribed.
    if (position === this.#savedPosition || this.#isForgotten) return;
    const now = this.#options.clock.now();
    if (!handled && Math.abs(now - this.#savedAt) < SAVE_INTERVAL_MS) return;
    await this.#write(position, this.#lastEvent, this.#fence);
    this.#savedPosition = position;
    this.#savedAt = now;
  }

  async #write(position: Position, last: RecordedEvent | null, fence: number): Promise<void> {
    const { coordination, store, name } = this.#options;
    await rememberLandmark(coordination, store, name, position, last, fence);
    await coordination.remember(name, POSITION_PREFIX + position, fence);
  }
}
