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
import { countCharactersRarely } from './text-length.ts';
import { bringUp } from './upcasters.ts';

/** A text of up to this many UTF-16 units can't exceed the limit in UTF-8. */
const SURELY_SMALL = MAX_EVENT_BYTES / 3;

/** The codec of the service, with what makes its first use of a type as quick as every later one. */
export interface ServiceEventCodec extends EventCodec {
  /** Compiles the schema of a type now, some milliseconds of work, and not when its first event is waited for. */
  prepare(type: EventType): void;
}

// The schemas are our own: checking them against the metaschema would only hold up the start.
const ajv = new Ajv({
  strict: false,
  validateFormats: false,
  meta: false,
  validateSchema: false,
  // It takes as long as all the rest of compiling, and V8 leaves out by itself what it leaves out.
  code: { optimize: false },
});
countCharactersRarely(ajv);

/**
 * Compiled when it is first needed: a process meets few of the types, and compiling all holds up its start. Once for all
 * codecs of a process: the schemas are the same, and a test opens many stores.
 */
const checks = new Map<string, ValidateFunction>();

function checkOf(type: string): ValidateFunction | undefined {
  const known = checks.get(type);
  if (known !== undefined || !Object.hasOwn(catalogue, type)) return known;
  const check = ajv.compile(catalogue[type as EventType].schema);
  checks.set(type, check);
  return check;
}

/** The codec of the service's own events: schemas are checked when an event is written and when it is read. */
export function createEventCodec(): ServiceEventCodec {
  // Kept by Ajv under its schema.
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
  const checkedData = ({ type, data }: Pick<NewEvent, 'type' | 'data'>): string => {
    const fault = dataFault(type, data);
    if (fault !== null) throw new EventStoreError('INVALID_EVENT', fault);
    return serialise(data, type);
  };
  const checkedMetadata = ({ type, metadata }: Pick<NewEvent, 'type' | 'metadata'>): string => {
    const fault = metadataFault(type, metadata);
    if (fault !== null) throw new EventStoreError('INVALID_EVENT', fault);
    return serialise(metadata, type);
  };
  const prepared = new WeakMap<NewEvent, PreparedEvent>();

  const decodeParsed = (parsed: ParsedEvent): RecordedEvent => {
    const { id, type, stream, revision, position, createdAt } = parsed;
    const { data, metadata, fault: versionFault } = atPresentVersion(parsed);
    const fault = versionFault ?? dataFault(type, data) ?? metadataFault(type, metadata);
    if (fault !== null) return faulty(parsed, fault);
    // Written out, as this is on the way of every event that is read and copying objects costs as much as
    // checking them.
    const event = { id, stream, revision, position, createdAt, type, data, metadata };
    // The schema has just been checked.
    return event as unknown as RecordedEvent;
  };

  return {
    prepare(type: EventType): void {
      checkOf(type);
    },

    prepareEvent(event: NewEvent): void {
      const data = checkedData(event);
      const metadata = splitAt(checkedMetadata(event), event.metadata.occurredAt);
      refuseTooLarge(event.type, data, metadata.join(event.metadata.occurredAt));
      prepared.set(event, { data, metadata });
    },

    encode(event: NewEvent): EncodedEvent {
      const known = prepared.get(event);
      if (known !== undefined) {
        const { data, metadata } = known;
        const [before, after] = metadata;
        const { occurredAt } = event.metadata;
        return { id: event.id, type: event.type, data, metadata: before + occurredAt + after };
      }
      const data = checkedData(event);
      const metadata = checkedMetadata(event);
      refuseTooLarge(event.type, data, metadata);
      return { id: event.id, type: event.type, data, metadata };
    },

    decode(raw: RawEvent): RecordedEvent {
      const { id, type, stream, revision, position, createdAt } = raw;
      let data: unknown;
      let metadata: unknown;
      try {
        data = JSON.parse(raw.data);
        metadata = JSON.parse(raw.metadata);
      } catch (error) {
        const broken = { id, stream, revision, position, createdAt, type, data: raw.data };
        const fault = `not JSON: ${messageOf(error)}`;
        return faulty({ ...broken, metadata: parsedIfJson(raw.metadata) }, fault);
      }
      return decodeParsed({ id, stream, revision, position, createdAt, type, data, metadata });
    },

    decodeParsed,
  };
}

/** What an event comes to, but for when it occurs. */
interface PreparedEvent {
  readonly data: string;
  /** What stands before and behind `occurredAt`. */
  readonly metadata: readonly [before: string, after: string];
}

/** Cuts a text of metadata where it says when the event occurs: within a value, the quotes would be escaped. */
function splitAt(metadata: string, occurredAt: string): readonly [string, string] {
  const at = metadata.indexOf(`"occurredAt":"${occurredAt}"`) + '"occurredAt":"'.length;
  return [metadata.slice(0, at), metadata.slice(at + occurredAt.length)];
}

/** An event that does not fit its schema, with what there is; where it does not say when it occurred, the store does. */
function faulty(found: ParsedEvent, fault: string): RecordedEvent {
  const { id, stream, revision, position, createdAt, type, data } = found;
  const known = isJsonObject(found.metadata) ? found.metadata : {};
  const { occurredAt } = known;
  const metadata = {
    ...known,
    occurredAt: typeof occurredAt === 'string' ? occurredAt : createdAt,
  };
  const event = { id, stream, revision, position, createdAt, type, data, metadata, fault };
  return event as unknown as RecordedEvent;
}

function parsedIfJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Said already: the event has the fault.
    return undefined;
  }
}

/** Brings an event of an older release up to the present version of its type. */
function atPresentVersion(raw: ParsedEvent): {
  readonly data: unknown;
  readonly metadata: unknown;
  readonly fault: string | null;
} {
  const { data, metadata } = raw;
  const known = Object.hasOwn(catalogue, raw.type) ? catalogue[raw.type as EventType] : undefined;
  if (!known) {
    throw new EventStoreError(
      'NEWER_SCHEMA',
      `event type ${raw.type} is not known to this release`,
      {
        stream: raw.stream,
      },
    );
  }
  const version = Number((metadata as { schemaVersion?: unknown } | null)?.schemaVersion);
  if (!Number.isInteger(version) || version < 1) {
    return { data, metadata, fault: `metadata of ${raw.type}: no schemaVersion` };
  }
  if (version > known.version) {
    throw new EventStoreError(
      'NEWER_SCHEMA',
      `${raw.type} of version ${version}; this release knows version ${known.version}`,
      { stream: raw.stream },
    );
  }
  if (version === known.version) return { data, metadata, fault: null };
  try {
    return {
      data: bringUp(raw.type, data as never, version, known.version),
      metadata,
      fault: null,
    };
  } catch (error) {
    return { data, metadata, fault: messageOf(error) };
  }
}

function serialise(value: unknown, type: string): string {
  try {
    return JSON.stringify(value);
  } catch (error) {
    throw new EventStoreError(
      'INVALID_EVENT',
      `${type} can't be written as JSON: ${messageOf(error)}`,
      {
        cause: error,
      },
    );
  }
}

function refuseTooLarge(type: string, data: string, metadata: string): void {
  if (data.length + metadata.length <= SURELY_SMALL) return;
  const bytes = utf8Length(data) + utf8Length(metadata);
  if (bytes <= MAX_EVENT_BYTES) return;
  throw new EventStoreError(
    'TOO_LARGE',
    `${type} has ${bytes} bytes; an event may have ${MAX_EVENT_BYTES}`,
  );
}

/** Bytes of a text in UTF-8. Only called for what may be over the limit. */
function utf8Length(text: string): number {
  return new TextEncoder().encode(text).length;
}

const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);
