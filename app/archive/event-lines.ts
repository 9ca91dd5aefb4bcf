import { isJsonObject } from '../../domain/json.ts';
import type { EncodedEvent, RawEvent } from '../../domain/event-store.ts';
import { ArchiveFault } from './archive-fault.ts';

/** An event as it moves from one log to another: without what belongs to the log it stands in. */
export interface MovedEvent extends EncodedEvent {
  readonly stream: string;
  readonly revision: number;
}

/**
 * What moves of an event, as the beginning of its line: data and metadata as the JSON that they are. What is no JSON
 * (a damaged event) goes as text, so that nothing is lost and the line stays one.
 */
export function contentOf({ stream, revision, id, type, data, metadata }: MovedEvent): string {
  const name = `{"stream":${JSON.stringify(stream)},"revision":${revision},"id":${JSON.stringify(id)}`;
  const kind = `${name},"type":${JSON.stringify(type)}`;
  return isJson(data) && isJson(metadata)
    ? `${kind},"data":${data},"metadata":${metadata}`
    : `${kind},"damaged":${JSON.stringify({ data, metadata })}`;
}

/** The rest of the line: what another log would say of the same event in its own way. */
export function placeOf({ position, createdAt }: Pick<RawEvent, 'position' | 'createdAt'>): string {
  return `,"position":"${position}","created_at":"${createdAt}"}\n`;
}

/**
 * The event of a line.
 * @param number of the line, from 1, for the message
 * @throws ArchiveFault `damaged`
 */
export function parseLine(line: string, number: number): MovedEvent {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (error) {
    throw new ArchiveFault('damaged', `line ${number} is no JSON`, error);
  }
  if (isJsonObject(value)) {
    const { stream, revision, id, type, data, metadata, damaged } = value;
    const named = typeof stream === 'string' && typeof id === 'string' && typeof type === 'string';
    if (named && typeof revision === 'number') {
      if (data !== undefined && metadata !== undefined) {
        const texts = { data: JSON.stringify(data), metadata: JSON.stringify(metadata) };
        return { stream, revision, id, type, ...texts };
      }
      if (isJsonObject(damaged)) {
        const texts = { data: damaged['data'], metadata: damaged['metadata'] };
        if (typeof texts.data === 'string' && typeof texts.metadata === 'string') {
          return { stream, revision, id, type, data: texts.data, metadata: texts.metadata };
        }
      }
    }
  }
  throw new ArchiveFault('damaged', `line ${number} is no event`);
}

function isJson(text: string): boolean {
  // JSON may hold line feeds between its parts; ours never does, and a line must not.
  if (text.includes('\n')) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
