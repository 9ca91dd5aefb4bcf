import type { AllStreamResolvedEvent, RecordedEvent, ResolvedEvent } from '@eventstore/db-client';
import {
  EventStoreError,
  type EventCodec,
  type ParsedEvent,
  type Position,
  type RawEvent,
} from '../../domain/event-store.ts';
import type { LogEntry } from '../../domain/log-engine.ts';
import { LazyEntry } from '../following/lazy-entry.ts';
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

/** The bytes of memory of an event without its data and metadata. */
const BASE_SIZE = 300;

/**
 * The entry of an event in a page of the log.
 * @throws EventStoreError `UNAVAILABLE` when the server sends no position
 */
export function entryOf(event: ClientEvent, codec: EventCodec): LogEntry {
  return new LazyEntry(event.streamId, positionOf(event), sizeOf(event), () => {
    const { decodeParsed } = codec;
    const parsed = decodeParsed === undefined ? null : parsedEvent(event);
    if (decodeParsed === undefined || parsed === null) return codec.decode(toRawEvent(event));
    return decodeParsed(parsed);
  });
}

/**
 * The stored form of an event, for the codec.
 * @throws EventStoreError `UNAVAILABLE` when the server sends no position
 */
export function toRawEvent(event: ClientEvent): RawEvent {
  return {
    ...identityOf(event),
    data: textOf(event.data, event.isJson),
    metadata: event.metadata === undefined ? '{}' : textOf(event.metadata, true),
  };
}

/** The value as parsed by the client; null if it is not JSON. */
function parsedEvent(event: ClientEvent): ParsedEvent | null {
  const { data, metadata = {} } = event;
  return isParsed(data) && isParsed(metadata) ? { ...identityOf(event), data, metadata } : null;
}

const isParsed = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !(value instanceof Uint8Array);

function identityOf(event: ClientEvent): Omit<RawEvent, 'data' | 'metadata'> {
  return {
    id: event.id,
    stream: event.streamId,
    revision: Number(event.revision),
    position: positionOf(event),
    type: event.type,
    createdAt: event.created.toISOString(),
  };
}

function positionOf({ position, streamId }: ClientEvent): Position {
  if (isKnown(position)) return toPosition(position);
  throw new EventStoreError(
    'UNAVAILABLE',
    'the server sends no positions with the events of a stream: EventStoreDB 22.6 or newer is needed',
    { stream: streamId },
  );
}

/** Approximately how much memory an event takes, in bytes. */
export function sizeOf({ data, metadata }: ClientEvent): number {
  return BASE_SIZE + sizeOfValue(data) + sizeOfValue(metadata);
}

/** The approximate size of a parsed value as JSON, which is cheaper than serializing it. */
function sizeOfValue(value: unknown): number {
  if (typeof value === 'string') return value.length + 2;
  if (value instanceof Uint8Array) return value.length;
  if (typeof value !== 'object' || value === null) return 8;
  let size = 2;
  for (const [name, member] of Object.entries(value)) size += name.length + 4 + sizeOfValue(member);
  return size;
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
