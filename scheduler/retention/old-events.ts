import type { EventStore, Position, RecordedEvent } from '../../domain/event-store.ts';

export interface OldPage {
  readonly events: readonly RecordedEvent[];
  /** No event of these streams lies between the returned events and this position. */
  readonly upTo: Position;
  /** The time of the first event that is not old enough; null while there is none. */
  readonly newer: string | null;
}

/**
 * Reads the events of a stream prefix that occurred before a time. It ends at the first event that is not old enough,
 * or at the end of the log. An event from the future, written by a wrong clock, does not end the read. Otherwise, no
 * event after it would ever be removed.
 *
 * @param asked.before ISO 8601
 * @param asked.present ISO 8601; now, plus the skew of the clocks
 * @throws EventStoreError
 */
export async function* oldEvents(
  store: EventStore,
  asked: {
    readonly prefix: string;
    readonly after: Position;
    readonly before: string;
    readonly present: string;
    readonly signal: AbortSignal;
  },
): AsyncGenerator<OldPage> {
  const { prefix, after, before, present, signal } = asked;
  let upTo = after;
  for await (const message of store.subscribe({ after, prefixes: [prefix], signal })) {
    if (message.kind === 'caught-up') {
      yield { events: [], upTo: message.position, newer: null };
      return;
    }
    const times = message.events.map(({ metadata }) => metadata.occurredAt);
    const end = times.findIndex((at) => at >= before && at <= present);
    const events = end === -1 ? message.events : message.events.slice(0, end);
    upTo = events.at(-1)?.position ?? upTo;
    yield { events, upTo, newer: times[end] ?? null };
    if (end !== -1) return;
  }
}
