import type { EncodedEvent, ExpectedRevision } from '../../../domain/event-store.ts';
import { FIELD_OVERHEAD, ProtobufWriter } from './protobuf-writer.ts';

/** An append, as passed to the adapter. */
export interface Append {
  readonly stream: string;
  readonly events: readonly EncodedEvent[];
  readonly expected: ExpectedRevision;
}

/** Numbers of the fields in `streams.proto` and `shared.proto` of the server. */
const request = { correlationId: 1, options: 2, proposedMessages: 3, isFinal: 4 } as const;
const options = { streamIdentifier: 1, position: 2, noStream: 3, any: 4, deadline: 7 } as const;
const event = { id: 1, metadata: 2, customMetadata: 3, data: 4 } as const;
const entry = { key: 1, value: 2 } as const;
const duration = { seconds: 1, nanos: 2 } as const;
const UUID_STRING = 2;
const STREAM_NAME = 3;

const UUID_LENGTH = 36;
const CONTENT_TYPE = 'application/json';

/** Bytes of an event in addition to its id, type, data and metadata. */
const EVENT_BYTES = 11 * FIELD_OVERHEAD + 'typecontent-type'.length + CONTENT_TYPE.length;
/** Bytes of a request in addition to its events and the name of the stream. */
const REQUEST_BYTES = 10 * FIELD_OVERHEAD + UUID_LENGTH;

/**
 * Serialises an append as one complete `BatchAppendReq`. It does not use the client's definition, which only knows the
 * deadline as a time of day. A server whose clock is ahead would consider such a deadline passed. The client's code
 * also takes three times as long.
 * @param correlationId a UUID that the response names
 * @param deadlineMs how long the server may take; milliseconds, more than 0
 */
export function encodeBatchAppend(
  { stream, events, expected }: Append,
  correlationId: string,
  deadlineMs: number,
): Buffer {
  const writer = new ProtobufWriter(REQUEST_BYTES + Buffer.byteLength(stream) + sizeOf(events));
  writer.integer(request.isFinal, 1);
  for (const proposed of events.toReversed()) writeEvent(writer, proposed);
  const end = writer.end;
  writeDeadline(writer, deadlineMs);
  writeExpected(writer, expected);
  const name = writer.end;
  writer.string(STREAM_NAME, stream);
  writer.nest(options.streamIdentifier, name);
  writer.nest(request.options, end);
  writeUuid(writer, request.correlationId, correlationId);
  return writer.message;
}

function sizeOf(events: readonly EncodedEvent[]): number {
  let bytes = 0;
  for (const { id, type, data, metadata } of events) {
    bytes += EVENT_BYTES + Buffer.byteLength(id) + Buffer.byteLength(type);
    bytes += Buffer.byteLength(data) + Buffer.byteLength(metadata);
  }
  return bytes;
}

function writeEvent(writer: ProtobufWriter, { id, type, data, metadata }: EncodedEvent): void {
  const end = writer.end;
  writer.string(event.data, data);
  writer.string(event.customMetadata, metadata);
  writeEntry(writer, 'content-type', CONTENT_TYPE);
  writeEntry(writer, 'type', type);
  writeUuid(writer, event.id, id);
  writer.nest(request.proposedMessages, end);
}

function writeEntry(writer: ProtobufWriter, key: string, value: string): void {
  const end = writer.end;
  writer.string(entry.value, value);
  writer.string(entry.key, key);
  writer.nest(event.metadata, end);
}

function writeUuid(writer: ProtobufWriter, field: number, uuid: string): void {
  const end = writer.end;
  writer.string(UUID_STRING, uuid);
  writer.nest(field, end);
}

function writeDeadline(writer: ProtobufWriter, deadlineMs: number): void {
  const milliseconds = Math.ceil(deadlineMs);
  const end = writer.end;
  writer.integer(duration.nanos, (milliseconds % 1_000) * 1_000_000);
  writer.integer(duration.seconds, Math.floor(milliseconds / 1_000));
  writer.nest(options.deadline, end);
}

function writeExpected(writer: ProtobufWriter, expected: ExpectedRevision): void {
  if (typeof expected === 'number') return writer.integer(options.position, expected);
  writer.nest(expected === 'none' ? options.noStream : options.any, writer.end);
}
