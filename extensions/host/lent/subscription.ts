import type { Clock } from '../../../domain/clock.ts';
import type { EventStore, Position, RecordedEvent } from '../../../domain/event-store.ts';
import { placeInLog, rememberEvent } from '../../../domain/remembered-event.ts';
import type { TopicPattern } from '../../../domain/schedule/topic-pattern.ts';
import { streamIdOf } from '../../../domain/topics/topic.ts';
import type { Telemetry } from '../../../observability/telemetry.ts';
import type { Coordination } from '../../../scheduler/coordination.ts';
import type { TopicEventView } from '../../contract.ts';
import type { DutyItem } from '../duty.ts';

/** Pauses before a handler that threw gets its event again; after the last it gets the next one. Milliseconds. */
const PAUSES = [100, 500, 2_000, 5_000] as const;

/** Before following is begun again that ended by a fault. Milliseconds. */
const AGAIN = 1_000;

/** How often, at most, a place is remembered at which nothing was handled. Milliseconds. */
const REMEMBER_EVERY = 1_000;

/** A place as it is remembered; the position of an empty log is an empty text. */
const AT = 'at ';
const FORGOTTEN = 'none';

/** Hands the events of some topics to a handler, one after the other, from where it was the last time. */
export class Subscription implements DutyItem {
  readonly what: string;
  readonly #name: string;
  readonly #pattern: TopicPattern;
  readonly #handle: (event: TopicEventView, signal: AbortSignal) => Promise<void>;
  readonly #failed: (error: unknown) => void;
  readonly #store: EventStore;
  readonly #coordination: Coordination;
  readonly #clock: Clock;
  readonly #telemetry: Telemetry;
  #fence = 0;
  /** Where it begins that has no remembered place. */
  #first: Position | null = null;
  #remembered: Position | null = null;
  /** The last event that was offered, by which the log of the place is known. */
  #last: RecordedEvent | null = null;
  #rememberedAt = 0;
  #isForgotten = false;

  constructor(options: {
    /** As the status names it. */
    readonly what: string;
    /** What its place is remembered under. */
    readonly name: string;
    readonly pattern: TopicPattern;
    readonly handle: (event: TopicEventView, signal: AbortSignal) => Promise<void>;
    readonly failed: (error: unknown) => void;
    readonly store: EventStore;
    readonly coordination: Coordination;
    readonly clock: Clock;
    readonly telemetry: Telemetry;
  }) {
    this.what = options.what;
    this.#name = options.name;
    this.#pattern = options.pattern;
    this.#handle = options.handle;
    this.#failed = options.failed;
    this.#store = options.store;
    this.#coordination = options.coordination;
    this.#clock = options.clock;
    this.#telemetry = options.telemetry;
  }

  /** Fixes where it begins, where that is not known yet: what is published from now on is handled. */
  async begin(): Promise<void> {
    if ((await this.#recall()) !== null) return;
    this.#first = await this.#store.head();
    // In vain where a place was forgotten that an owner of the lease had remembered: then it is known here alone.
    await rememberEvent(this.#coordination, this.#store, this.#name, this.#first, null, 0);
    await this.#coordination.remember(this.#name, AT + this.#first, 0);
  }

  async run(signal: AbortSignal, fence: number): Promise<void> {
    this.#fence = fence;
    while (!signal.aborted) {
      try {
        await this.#follow(signal);
      } catch (error) {
        if (signal.aborted) return;
        const fields = { subscription: this.#name, error };
        this.#telemetry.log.warn('a subscription of an extension stopped; going on', fields);
        await this.#clock.sleep(AGAIN, signal).catch(() => {});
      }
    }
  }

  /** Forgets the place. */
  async forget(): Promise<void> {
    this.#isForgotten = true;
    await this.#coordination.remember(this.#name, FORGOTTEN, this.#fence);
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const known = (await this.#recall()) ?? this.#first;
    let after = (known === null ? null : await this.#inLog(known)) ?? (await this.#store.head());
    for await (const message of this.#store.subscribe({ after, prefixes: ['topic-'], signal })) {
      if (message.kind === 'caught-up') {
        after = message.position;
        await this.#remember(after, false);
        continue;
      }
      let handled = false;
      for (const event of message.events) {
        if (signal.aborted) break;
        handled = (await this.#offer(event, signal)) || handled;
        if (signal.aborted) break;
        after = event.position;
        this.#last = event;
      }
      await this.#remember(after, handled);
    }
    await this.#remember(after, true);
  }

  /** @returns whether it was an event for the handler */
  async #offer(event: RecordedEvent, signal: AbortSignal): Promise<boolean> {
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
        this.#failed(error);
        const pause = PAUSES[tries];
        if (pause === undefined) return true;
        await this.#clock.sleep(pause, signal).catch(() => {});
      }
    }
    return true;
  }

  /** null where another log was put in the place of that in which it lies, or an older copy of it. */
  #inLog(place: Position): Promise<Position | null> {
    return placeInLog(this.#coordination, this.#store, this.#name, place);
  }

  async #recall(): Promise<Position | null> {
    const text = await this.#coordination.recall(this.#name);
    return text?.startsWith(AT) ? text.slice(AT.length) : null;
  }

  async #remember(position: Position, handled: boolean): Promise<void> {
    // A handler that went on for longer than it was waited for has ended.
    if (position === this.#remembered || this.#isForgotten) return;
    const now = this.#clock.now();
    if (!handled && Math.abs(now - this.#rememberedAt) < REMEMBER_EVERY) return;
    const fence = this.#fence;
    await rememberEvent(this.#coordination, this.#store, this.#name, position, this.#last, fence);
    await this.#coordination.remember(this.#name, AT + position, fence);
    this.#remembered = position;
    this.#rememberedAt = now;
  }
}
