import { decorate } from '../domain/decorate.ts';
import type { EventStore, NewEvent } from '../domain/event-store.ts';
import type { Span, Traces } from './telemetry.ts';

/**
 * An event log that records each append as a span of its events' trace. Appends of events without a trace are passed on
 * unchanged.
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
  return decorate(store, {
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

/** The kind of a stream, from a small set. */
const kindOf = (stream: string): string => stream.split('-', 1)[0] ?? stream;

function failed(span: Span, error: unknown): void {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'other';
  span.fail(code, error instanceof Error ? error.message : String(error));
}
