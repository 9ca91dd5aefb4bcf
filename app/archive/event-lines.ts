import { isJsonObject } from '../../domain/json.ts';
import type { MovedEvent } from '../../domain/events/event-line.ts';
import { ArchiveFault } from './archive-fault.ts';

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
