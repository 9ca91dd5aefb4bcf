import type { AllStreamResolvedEvent, RecordedEvent, ResolvedEvent } from '@eventstore/db-client';
import { EventStoreError, type RawEvent } from '../../domain/event-store.ts';
import { isKnown, toPosition } from './position.ts';

/** An event as the client hands it over, from a stream or from `$all`. */
export type ClientEvent = Pick<
  RecordedEvent,
  'streamId' | 'id' | 'isJson' | 'revision' | 'type' | 'created' | 'position'
> & { readonly data: unknown; readonly metadata?: unknown };

/** The event within what the client delivers; none where a link points to one that is gone. */
export function eventOf(resolved: ResolvedEvent | AllStreamResolvedEvent): ClientEvent | undefined {
  return resolved.event;
}

/**
 * Whether the engine wrote it for itself: stream metadata, statistics, projections, links. These are
 * not part of the log as the service sees it.
 */
export function isSystemEvent(event: ClientEvent): boolean {
  return event.streamId.startsWith('$') || event.type.startsWith('$');
}

/**
 * Back to what was stored, for the codec to judge.
 * @throws EventStoreError `UNAVAILABLE` when the server does not say where the event stands
 */
export function toRaw(event: ClientEvent): RawEvent {
  if (!isKnown(event.position)) {
    throw new EventStoreError(
      'UNAVAILABLE',
      'The server gives no positions with the events of a stream; version 22.6 or newer is needed',
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
 * The JSON text that was stored. The client parses it, and hands over as a string (data) or as bytes
 * (metadata) what it could not parse. A string that can be parsed was therefore a JSON string.
 */
function textOf(value: unknown, isJson: boolean): string {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('utf8');
  if (isJson && typeof value === 'string' && !isJsonText(value)) return value;
  return JSON.stringify(value) ?? '';
}

function isJsonText(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
