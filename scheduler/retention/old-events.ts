import type { EventStore, Position, RecordedEvent } from '../../domain/event-store.ts';

/** Events of some streams, in the order of the log. */
export interface OldPage {
  readonly events: readonly RecordedEvent[];
  /** Nothing of these streams lies between the events and here. */
  readonly upTo: Position;
  /** When the first event occurred that is not older; null while none was met. */
  readonly newer: string | null;
}

/**
 * What occurred before a moment in the streams of a prefix, from a position on; ends at the first event that is not
 * older, or at the end of the log. What lies ahead of the present, by a clock that was wrong, ends nothing: for as long
 * as it lies ahead, nothing behind it would go.
 *
 * @param asked.before ISO 8601
 * @param asked.present ISO 8601, with as much added as clocks may differ
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
  const { prefix, after, before, present } = asked;
  const ends = ({ metadata: { occurredAt: at } }: RecordedEvent): boolean =>
    at >= before && at <= present;
  const own = new AbortController();
  let reached = after;
  const signal = AbortSignal.any([asked.signal, own.signal]);
  try {
    for await (const message of store.subscribe({ after, prefixes: [prefix], signal })) {
      if (message.kind === 'caught-up') {
        yield { events: [], upTo: message.position, newer: null };
        return;
      }
      const end = message.events.findIndex(ends);
      const events = end === -1 ? message.events : message.events.slice(0, end);
      reached = events.at(-1)?.position ?? reached;
      const newer = end === -1 ? null : (message.events[end]?.metadata.occurredAt ?? null);
      yield { events, upTo: reached, newer };
      if (end !== -1) return;
    }
  } finally {
    own.abort();
  }
}

/** The whole of a stream, with what of it can't be read. @throws EventStoreError */
export async function readWholeStream(
  store: EventStore,
  stream: string,
): Promise<readonly RecordedEvent[]> {
  const events: RecordedEvent[] = [];
  for (;;) {
    const last = events.at(-1);
    const from = last === undefined ? {} : { from: last.revision + 1 };
    const page = await store.readStream(stream, { ...from, limit: PAGE, faulty: true });
    events.push(...page);
    if (page.length < PAGE) return events;
  }
}

const PAGE = 500;
