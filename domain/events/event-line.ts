import type { EncodedEvent, RawEvent } from '../event-store.ts';

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
