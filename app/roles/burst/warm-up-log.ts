import {
  BEGINNING,
  type AppendResult,
  type EventStore,
  type NewEvent,
  type RecordedEvent,
  type StreamAppend,
  type SubscriptionMessage,
} from '../../../domain/event-store.ts';

const nothing = async (): Promise<[]> => [];

/** An event log for a warm-up: appends pass through the code of the real log, and nothing is kept. */
export function warmUpLog(
  real: Pick<EventStore, 'prepare' | 'rehearse'>,
  recorded: readonly RecordedEvent[],
): EventStore {
  const events = new Map(recorded.map((event) => [event.stream, event]));
  const appendInOrder: EventStore['appendInOrder'] = async (appends) => {
    await real.rehearse?.(appends);
    const results: AppendResult[] = [];
    for (const append of appends) results.push(resultOf(append));
    return results;
  };
  return {
    appendInOrder,
    async append(stream, newEvents, expected) {
      const append = { stream, events: newEvents, expected };
      await appendInOrder([append]);
      return resultOf(append);
    },
    prepare: (newEvents: readonly NewEvent[]) => real.prepare?.(newEvents),
    async readStream(stream) {
      const event = events.get(stream);
      return event === undefined ? [] : [event];
    },
    async *subscribe({ prefixes, signal }): AsyncGenerator<SubscriptionMessage, void, undefined> {
      const followed = [...events.values()].filter(
        ({ stream }) => prefixes?.some((prefix) => stream.startsWith(prefix)) ?? true,
      );
      yield { kind: 'events', events: followed };
      yield { kind: 'caught-up', position: followed.at(-1)?.position ?? BEGINNING };
      await new Promise<void>((resolve) => {
        if (signal.aborted) resolve();
        signal.addEventListener('abort', () => resolve(), { once: true });
      });
    },
    readAll: nothing,
    readAllBackwards: nothing,
    listStreams: async () => ({ streams: [], next: null }),
    truncate: async () => {},
    isPosition: () => false,
    head: async () => BEGINNING,
    reaches: async () => true,
    hasHad: async () => true,
    ping: async () => {},
    close: async () => {},
  };
}

/** The result of a log in which each stream is at the expected revision. */
function resultOf({ events, expected }: StreamAppend): AppendResult {
  const before = typeof expected === 'number' ? expected : -1;
  // To V8, numbers from the writer thread are of another kind than numbers that are counted here.
  const revision = Number(Float64Array.of(before + events.length)[0]);
  return { revision, position: BEGINNING, duplicate: false };
}
