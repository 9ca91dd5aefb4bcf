import { decorate } from '../../domain/decorate.ts';
import type { EventStore, Position, RecordedEvent } from '../../domain/event-store.ts';

/** A log that ends at a position: its subscribers see nothing later. */
export function logUpTo(store: EventStore, until: Position): EventStore {
  const subscribe: EventStore['subscribe'] = async function* (options) {
    const ended = new AbortController();
    const signal = AbortSignal.any([options.signal, ended.signal]);
    const onPassed = (position: Position): void => {
      options.onPassed?.(position < until ? position : until);
      // Stops reading there: most of the log may come after that position.
      if (position >= until) ended.abort();
    };
    for await (const message of store.subscribe({ ...options, signal, onPassed })) {
      if (message.kind === 'events') {
        const events: readonly RecordedEvent[] = message.events.filter(
          ({ position }) => position <= until,
        );
        if (events.length > 0) yield { kind: 'events', events };
        if (events.length === message.events.length) continue;
      } else if (message.position < until) {
        yield message;
        continue;
      }
      yield { kind: 'caught-up', position: until };
      return;
    }
    if (ended.signal.aborted && !options.signal.aborted) {
      yield { kind: 'caught-up', position: until };
    }
  };
  return decorate(store, { subscribe });
}
