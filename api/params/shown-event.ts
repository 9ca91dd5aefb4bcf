import { EventStoreError } from '../../domain/event-store.ts';
import type { JsonValue } from '../../domain/json.ts';
import { namespaceOf } from '../../domain/namespaces/namespace.ts';
import { cutText, cutValue } from '../../projections/cut-document.ts';
import type { EventPayloads } from '../../projections/reading/event-payloads.ts';
import type { RunDocument } from '../../projections/views/runs.ts';

/** The dependencies for showing the events of runs. */
export interface EventSource {
  readonly eventPayloads: Pick<EventPayloads, 'textOf'>;
}

/** The event that triggered a run. */
export interface ShownEvent {
  readonly id: string;
  readonly topic: string;
  /** null if it can't be read. */
  readonly payload: JsonValue;
  readonly source_agent_id: string;
  readonly published_at: string;
}

/**
 * The event that triggered a run, with its payload; null for none. The payload is null if it can't be read, because the
 * log is unavailable or retention has just removed it with the run.
 * @param most the largest payload in bytes; a larger one is replaced by its size. Default: no limit
 */
export async function shownEvent(
  source: EventSource,
  run: RunDocument,
  most = Infinity,
): Promise<ShownEvent | null> {
  // Documents of an older shape lack it.
  const { event = null } = run as Partial<RunDocument>;
  if (event === null) return null;
  const { id, topic, source_agent_id, published_at } = event;
  const own = event.payload as JsonValue | undefined;
  const payload =
    own === undefined ? await storedPayload(source, id, run, most) : cutValue(own, most);
  return { id, topic, payload, source_agent_id, published_at };
}

async function storedPayload(
  { eventPayloads }: EventSource,
  eventId: string,
  run: RunDocument,
  most: number,
): Promise<JsonValue> {
  const text = await eventPayloads.textOf(eventId, namespaceOf(run)).catch((error: unknown) => {
    if (error instanceof EventStoreError) return null;
    throw error;
  });
  return text === null ? null : cutText(text, most);
}
