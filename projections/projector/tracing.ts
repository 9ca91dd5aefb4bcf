import type { RecordedEvent } from '../../domain/event-store.ts';
import type { Traces } from '../../observability/telemetry.ts';
import type { Projection } from '../read-model.ts';

const MAX_LINKS = 64;

/**
 * Takes a batch within a new span, linked to the traces of its events. No span if none of this view's events belongs to
 * a trace.
 */
export async function traceBatch<T>(
  traces: Traces,
  projection: Projection,
  events: readonly RecordedEvent[],
  take: () => Promise<T>,
): Promise<T> {
  const links = new Set<string>();
  let own = 0;
  for (const { stream, metadata } of events) {
    if (!projection.streams.some((prefix) => stream.startsWith(prefix))) continue;
    own += 1;
    if (metadata.traceparent !== undefined) links.add(metadata.traceparent);
  }
  if (links.size === 0) return take();
  const span = traces.begin(`project ${projection.name}`, {
    links: [...links].slice(0, MAX_LINKS),
    attributes: { 'svc.projection': projection.name, 'svc.event.count': own },
  });
  try {
    return await take();
  } catch (error) {
    span.fail(error instanceof Error ? error.name : 'other');
    throw error;
  } finally {
    span.end();
  }
}
