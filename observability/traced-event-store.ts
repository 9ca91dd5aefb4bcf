import { decorated } from '../domain/decorated.ts';
import type { EventStore, NewEvent } from '../domain/event-store.ts';
import type { Span, Traces } from './telemetry.ts';

/**
 * An event log whose appends are spans, each a part of the trace that its events carry. Appends of events without one
 * (leases of keys, say, and all of a service that is not traced) are handed on as they are.
 */
export function tracedEventStore(store: EventStore, traces: Traces): EventStore {
  const traced = async <T>(
    first: { readonly stream: string; readonly events: readonly NewEvent[] } | undefined,
    all: readonly NewEvent[],
    append: () => Promise<T>,
  ): Promise<T> => {
    const parent = all.find(({ metadata }) => metadata.traceparent !== undefined)?.metadata;
    if (first === undefined || parent === undefined) return append();
    const span = traces.begin(`append ${kindOf(first.stream)}`, {
      parent: parent.traceparent,
      attributes: {
        'svc.stream': first.stream,
        'svc.event.types': [...new Set(all.map(({ type }) => type))].join(','),
        'svc.event.count': all.length,
      },
    });
    try {
      return await append();
    } catch (error) {
      failed(span, error);
      throw error;
    } finally {
      span.end();
    }
  };
  return decorated(store, {
    append: (stream, events, expected) =>
      traced({ stream, events }, events, () => store.append(stream, events, expected)),
    appendInOrder: (appends) =>
      traced(
        appends[0],
        appends.flatMap(({ events }) => events),
        () => store.appendInOrder(appends),
      ),
  });
}

/** What the names of streams of one kind begin with: a small set. */
const kindOf = (stream: string): string => stream.split('-', 1)[0] ?? stream;

function failed(span: Span, error: unknown): void {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'other';
  span.fail(code, error instanceof Error ? error.message : String(error));
}
