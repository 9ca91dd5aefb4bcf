import { Ajv, type ValidateFunction } from 'ajv';
import {
  EventStoreError,
  MAX_EVENT_BYTES,
  type EncodedEvent,
  type EventCodec,
  type NewEvent,
  type ParsedEvent,
  type RawEvent,
  type RecordedEvent,
} from '../event-store.ts';
import { isJsonObject } from '../json.ts';
import { catalogue, type EventType } from './catalogue.ts';
import { MetadataSchema } from './metadata.ts';
import { addLengthKeywords } from './length-keywords.ts';
import { upcast } from './upcasters.ts';

/** A string of up to this many UTF-16 units can't exceed the limit in UTF-8. */
const MAX_UNCHECKED_LENGTH = MAX_EVENT_BYTES / 3;

export interface ServiceEventCodec extends EventCodec {
  /**
   * Compiles the schema of a type before any request waits for the type's first event. Compiling takes milliseconds.
   */
  prepare(type: EventType): void;
}

// The schemas are the service's own. Validating them, and optimising the generated code, would only
// delay the start.
const ajv = new Ajv({
  strict: false,
  validateFormats: false,
  meta: false,
  validateSchema: false,
  code: { optimize: false },
});
addLengthKeywords(ajv);

/** Compiled on first use, because a process meets few of the types; shared by all codecs of the process. */
const checks = new Map<string, ValidateFunction>();

function checkOf(type: string): ValidateFunction | undefined {
  const known = checks.get(type);
  if (known !== undefined || !Object.hasOwn(catalogue, type)) return known;
  const check = ajv.compile(catalogue[type as EventType].schema);
  checks.set(type, check);
  return check;
}

/** The codec of the service's own events: validates them against their schemas when writing and reading. */
export function createEventCodec(): ServiceEventCodec {
  // Ajv caches the check by its schema.
  const checkMetadata = ajv.compile(MetadataSchema);
  const dataFault = (type: string, data: unknown): string | null => {
    const check = checkOf(type);
    if (!check) return `there is no event type ${type}`;
    if (check(data)) return null;
    return `data of ${type}: ${ajv.errorsText(check.errors, { dataVar: 'data' })}`;
  };
  const metadataFault = (type: string, metadata: unknown): string | null => {
    if (checkMetadata(metadata)) return null;
    return `metadata of ${type}: ${ajv.errorsText(checkMetadata.errors, { dataVar: 'metadata' })}`;
  };
  const serialiseChecked = ({
    type,
    data,
    metadata,
  }: NewEvent): Pick<EncodedEvent, 'data' | 'metadata'> => {
    const fault = dataFault(type, data) ?? metadataFault(type, metadata);
    if (fault !== null) throw new EventStoreError('INVALID_EVENT', fault);
    const encoded = { data: serialise(data, type), metadata: serialise(metadata, type) };
    refuseTooLarge(type, encoded.data, encoded.metadata);
    return encoded;
  };
  const prepared = new WeakMap<NewEvent, PreparedEvent>();

  const decodeParsed = (parsed: ParsedEvent): RecordedEvent => {
    const { id, type, stream, revision, position, createdAt } = parsed;
    const { data, metadata, fault: versionFault } = atPresentVersion(parsed);
    const fault = versionFault ?? dataFault(type, data) ?? metadataFault(type, metadata);
    if (fault !== null) return faulty(parsed, fault);
    // Lists the fields, because this code executes for every event that is read, and a spread costs
    // as much as validating.
    const event = { id, stream, revision, position, createdAt, type, data, metadata };
    return event as unknown as RecordedEvent;
  };

  return {
    prepare(type: EventType): void {
      checkOf(type);
    },

    prepareEvent(event: NewEvent): void {
      const { data, metadata } = serialiseChecked(event);
      prepared.set(event, { data, metadata: splitAt(metadata, event.metadata.occurredAt) });
    },

    encode(event: NewEvent): EncodedEvent {
      const { id, type } = event;
      const known = prepared.get(event);
      if (known === undefined) return { id, type, ...serialiseChecked(event) };
      return {
        id,
        type,
        data: known.data,
        metadata: known.metadata.join(event.metadata.occurredAt),
      };
    },

    decode(raw: RawEvent): RecordedEvent {
      try {
        const [data, metadata] = [JSON.parse(raw.data), JSON.parse(raw.metadata)] as unknown[];
        return decodeParsed({ ...raw, data, metadata });
      } catch (error) {
        if (!(error instanceof SyntaxError)) throw error;
        return faulty(
          { ...raw, metadata: parsedIfJson(raw.metadata) },
          `not JSON: ${error.message}`,
        );
      }
    },

    decodeParsed,
  };
}

/** A serialised event whose time may still change. */
interface PreparedEvent {
  readonly data: string;
  /** The parts before and after `occurredAt`. */
  readonly metadata: readonly [before: string, after: string];
}

/** Splits serialised metadata at `occurredAt`. Within another value, the quotes would be escaped. */
function splitAt(metadata: string, occurredAt: string): readonly [string, string] {
  const at = metadata.indexOf(`"occurredAt":"${occurredAt}"`) + '"occurredAt":"'.length;
  return [metadata.slice(0, at), metadata.slice(at + occurredAt.length)];
}

/** An event that does not fit its schema. If it lacks a time, it gets the store's time. */
function faulty(found: ParsedEvent, fault: string): RecordedEvent {
  const { id, stream, revision, position, createdAt, type, data } = found;
  const known = isJsonObject(found.metadata) ? found.metadata : {};
  const occurredAt = typeof known['occurredAt'] === 'string' ? known['occurredAt'] : createdAt;
  const metadata = { ...known, occurredAt };
  const event = { id, stream, revision, position, createdAt, type, data, metadata, fault };
  return event as unknown as RecordedEvent;
}

function parsedIfJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Upcasts an event of an older release to the present version of its type. @throws EventStoreError `NEWER_SCHEMA` */
function atPresentVersion({ type, stream, data, metadata }: ParsedEvent): {
  readonly data: unknown;
  readonly metadata: unknown;
  readonly fault: string | null;
} {
  if (!Object.hasOwn(catalogue, type)) {
    const message = `this release does not know the event type ${type}`;
    throw new EventStoreError('NEWER_SCHEMA', message, { stream });
  }
  const known = catalogue[type as EventType].version;
  const version = Number((metadata as { schemaVersion?: unknown } | null)?.schemaVersion);
  if (!Number.isInteger(version) || version < 1) {
    return { data, metadata, fault: `metadata of ${type}: no schemaVersion` };
  }
  if (version > known) {
    const message = `${type} has version ${version}; this release knows version ${known}`;
    throw new EventStoreError('NEWER_SCHEMA', message, { stream });
  }
  if (version === known) return { data, metadata, fault: null };
  try {
    return { data: upcast(type, data as never, version, known), metadata, fault: null };
  } catch (error) {
    return { data, metadata, fault: messageOf(error) };
  }
}

function serialise(value: unknown, type: string): string {
  try {
    return JSON.stringify(value);
  } catch (cause) {
    const message = `${type} can't be written as JSON: ${messageOf(cause)}`;
    throw new EventStoreError('INVALID_EVENT', message, { cause });
  }
}

function refuseTooLarge(type: string, data: string, metadata: string): void {
  if (data.length + metadata.length <= MAX_UNCHECKED_LENGTH) return;
  const bytes = new TextEncoder().encode(data + metadata).length;
  if (bytes <= MAX_EVENT_BYTES) return;
  const message = `${type} has ${bytes} bytes; the limit for an event is ${MAX_EVENT_BYTES}`;
  throw new EventStoreError('TOO_LARGE', message);
}

const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);
