import type { EventStore, Position, RecordedEvent } from '../../domain/event-store.ts';

/** A part of the log. */
export interface LogPage {
  readonly events: readonly RecordedEvent[];
  /** Everything of these streams up to here is in this page or before it. */
  readonly upTo: Position;
  /** The end of the log was reached. */
  readonly isEnd: boolean;
}

/** What stands next in the log in streams of some prefixes; the source is left again at once. */
export async function nextPage(
  store: EventStore,
  after: Position,
  prefixes: readonly string[],
  signal: AbortSignal,
): Promise<LogPage> {
  for await (const message of store.subscribe({ after, prefixes, signal })) {
    if (message.kind === 'caught-up') return { events: [], upTo: message.position, isEnd: true };
    const { events } = message;
    const last = events.at(-1);
    if (last !== undefined) return { events, upTo: last.position, isEnd: false };
  }
  return { events: [], upTo: after, isEnd: true };
}
