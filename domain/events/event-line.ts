import type { EncodedEvent, RawEvent } from '../event-store.ts';

/** An event that moves to another log, without the parts that belong to its present log. */
export interface MovedEvent extends EncodedEvent {
  readonly stream: string;
  readonly revision: number;
}

/**
 * The first part of an event's line: the parts that move. Damaged data or metadata, which is not JSON, is written as a
 * string.
 */
export function contentOf({ stream, revision, id, type, data, metadata }: MovedEvent): string {
  const name = `{"stream":${JSON.stringify(stream)},"revision":${revision},"id":${JSON.stringify(id)}`;
  const kind = `${name},"type":${JSON.stringify(type)}`;
  return isJson(data) && isJson(metadata)
    ? `${kind},"data":${data},"metadata":${metadata}`
    : `${kind},"damaged":${JSON.stringify({ data, metadata })}`;
}

/** The rest of the line: the parts that differ between logs. */
export function placeOf({ position, createdAt }: Pick<RawEvent, 'position' | 'createdAt'>): string {
  return `,"position":"${position}","created_at":"${createdAt}"}\n`;
}

function isJson(text: string): boolean {
  // JSON may contain line feeds; a line must not.
  if (text.includes('\n')) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
