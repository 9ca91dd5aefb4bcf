import {
  EventStoreError,
  MAX_EVENT_BYTES,
  type EncodedEvent,
  type EventCodec,
  type NewEvent,
  type ParsedEvent,
  type RawEvent,
  type RecordedEvent,
} from '../../domain/event-store.ts';

/** `metadata.schemaVersion` of an event that {@link plainCodec} reads as a newer release's. */
export const NEWER_VERSION = '999';

/** An event whose data has this key is written without an error, and is invalid when read. */
export const BROKEN_KEY = 'broken';

/**
 * A codec for tests of the stores: accepts any type and any JSON data, without schemas. {@link
 * NEWER_VERSION} and {@link BROKEN_KEY} stand for events that a real one rejects when reading.
 */
export const plainCodec: Required<Omit<EventCodec, 'prepareEvent'>> = {
  encode(event: NewEvent): EncodedEvent {
    const data = toJson(event.data, []);
    const metadata = toJson(event.metadata, []);
    if (Buffer.byteLength(data) + Buffer.byteLength(metadata) > MAX_EVENT_BYTES) {
      throw new EventStoreError('TOO_LARGE', `an event is larger than ${MAX_EVENT_BYTES} bytes`);
    }
    return { id: event.id, type: event.type, data, metadata };
  },

  decode(raw: RawEvent): RecordedEvent {
    const metadata: unknown = JSON.parse(raw.metadata);
    try {
      return decodeParsed({ ...raw, data: JSON.parse(raw.data), metadata });
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      return { ...decodeParsed({ ...raw, metadata }), fault: error.message };
    }
  },

  decodeParsed,
};

function decodeParsed({ data, metadata, ...raw }: ParsedEvent): RecordedEvent {
  if (isRecord(metadata) && metadata.schemaVersion === NEWER_VERSION) {
    throw new EventStoreError('NEWER_SCHEMA', `${raw.type} is of a newer release`, {
      stream: raw.stream,
    });
  }
  const fault = isRecord(data) && BROKEN_KEY in data ? { fault: 'the data is broken' } : {};
  return { ...raw, data, metadata, ...fault } as RecordedEvent;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

/** Serializes JSON, and rejects values that would not be restored exactly. */
function toJson(value: unknown, path: readonly unknown[]): string {
  check(value, path);
  return JSON.stringify(value);
}

function check(value: unknown, path: readonly unknown[]): void {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return;
  if (typeof value === 'number' && Number.isFinite(value)) return;
  if (typeof value !== 'object') {
    throw new EventStoreError('INVALID_EVENT', `JSON cannot hold ${typeof value}`);
  }
  if (path.includes(value)) throw new EventStoreError('INVALID_EVENT', 'the data has a cycle');
  const below = [...path, value];
  for (const part of Array.isArray(value) ? value : Object.values(value)) check(part, below);
}
