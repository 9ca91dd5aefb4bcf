import type { EventStore } from '../../domain/event-store.ts';
import type { RequestedEvent, TriggeringEvent } from '../../domain/events/catalogue.ts';
import type { JsonObject } from '../../domain/json.ts';
import { storedPayload, withPayload } from '../../domain/topics/stored-payload.ts';
import { WeighedCache } from './weighed-cache.ts';

/** Limits of the payloads in memory: their number and their total characters. */
const MAX_PAYLOADS = 1_000;
const MAX_CHARACTERS = 8 * 1024 * 1024;

interface Stored {
  readonly namespace: string;
  /** Payloads as JSON text, so that each reader gets its own object. */
  readonly text: string;
}

/**
 * The payloads of the events that triggered runs. They are in the run's request, or stored once for all runs of an
 * event. Stored payloads are read once and kept, because many runs need the same payload at the same time.
 */
export class EventPayloads {
  readonly #store: Pick<EventStore, 'readStream'>;
  readonly #known = new WeighedCache<Stored>({
    entries: MAX_PAYLOADS,
    weight: MAX_CHARACTERS,
    weigh: ({ text }) => text.length,
  });
  readonly #reading = new Map<string, Promise<Stored | null>>();

  constructor(store: Pick<EventStore, 'readStream'>) {
    this.#store = store;
  }

  /**
   * An event with its payload; null if the log has none in the run's namespace.
   * @throws EventStoreError
   */
  async whole(event: RequestedEvent, namespace: string): Promise<TriggeringEvent | null> {
    if (event.payload !== undefined) return withPayload(event, event.payload as JsonObject);
    const text = await this.textOf(event.id, namespace);
    return text === null ? null : withPayload(event, JSON.parse(text) as JsonObject);
  }

  /** A stored payload as JSON; null in the same cases as {@link whole}. @throws EventStoreError */
  async textOf(eventId: string, namespace: string): Promise<string | null> {
    const stored = this.#known.get(eventId) ?? (await this.#read(eventId));
    return stored?.namespace === namespace ? stored.text : null;
  }

  /** Reads a payload once for all concurrent callers. */
  #read(eventId: string): Promise<Stored | null> {
    const pending = this.#reading.get(eventId);
    if (pending !== undefined) return pending;
    const reading = storedPayload(this.#store, eventId)
      .then((found) => {
        if (found === null) return null;
        const stored = { namespace: found.namespace, text: JSON.stringify(found.payload) };
        this.#known.set(eventId, stored);
        return stored;
      })
      .finally(() => this.#reading.delete(eventId));
    this.#reading.set(eventId, reading);
    return reading;
  }
}
