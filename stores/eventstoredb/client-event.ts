import type { AllStreamResolvedEvent, RecordedEvent, ResolvedEvent } from '@eventstore/db-client';
import { EventStoreError, type RawEvent } from '../../domain/event-store.ts';
import { isKnown, toPosition } from './position.ts';

/** An event as the client delivers it. */
export type ClientEvent = Pick<
  RecordedEvent,
  'streamId' | 'id' | 'isJson' | 'revision' | 'type' | 'created' | 'position'
> & { readonly data: unknown; readonly metadata?: unknown };

/** The event that the client delivered; undefined for a link to a deleted event. */
export function eventOf(resolved: ResolvedEvent | AllStreamResolvedEvent): ClientEvent | undefined {
  return resolved.event;
}

/** Whether the engine wrote it for itself (metadata, statistics, projections, links). The service never sees these. */
export function isSystemEvent(event: ClientEvent): boolean {
  return event.streamId.startsWith('$') || event.type.startsWith('$');
}

/**
 * The stored form of an event, for the codec.
 * @throws EventStoreError `UNAVAILABLE` when the server sends no position
 */
export function toRawEvent(event: ClientEvent): RawEvent {
  if (!isKnown(event.position)) {
    throw new EventStoreError(
      'UNAVAILABLE',
      'the server sends no positions with the events of a stream: EventStoreDB 22.6 or newer is needed',
      { stream: event.streamId },
    );
  }
  return {
    id: event.id,
    stream: event.streamId,
    revision: Number(event.revision),
    position: toPosition(event.position),
    type: event.type,
    data: textOf(event.data, event.isJson),
    metadata: event.metadata === undefined ? '{}' : textOf(event.metadata, true),
    createdAt: event.created.toISOString(),
  };
}

/**
 * The stored JSON. The client parses it, and delivers what it cannot parse as a string (data) or as bytes (metadata). A
 * string that parses was therefore a JSON string.
 */
function textOf(value: unknown, isJson: boolean): string {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('utf8');
  if (isJson && typeof value === 'string' && !isJsonText(value)) return value;
  return JSON.stringify(value) ?? '';
}

/** Whether a string is JSON. */
export function isJsonText(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
