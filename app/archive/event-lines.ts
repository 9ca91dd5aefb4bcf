import type { MovedEvent } from '../../domain/events/event-line.ts';
import { isJsonObject } from '../../domain/json.ts';
import { ArchiveError } from './archive-error.ts';

/**
 * Parses the event of a line.
 * @param number of the line, from 1, for the message
 * @throws ArchiveError `damaged`
 */
export function parseLine(line: string, number: number): MovedEvent {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (error) {
    throw new ArchiveError('damaged', `line ${number} is not JSON`, error);
  }
  if (isJsonObject(value)) {
    const { stream, revision, id, type, data, metadata, damaged } = value;
    const isNamed =
      typeof stream === 'string' && typeof id === 'string' && typeof type === 'string';
    if (isNamed && typeof revision === 'number') {
      const place = { stream, revision, id, type };
      if (data !== undefined && metadata !== undefined) {
        return { ...place, data: JSON.stringify(data), metadata: JSON.stringify(metadata) };
      }
      // Damaged events are archived as strings.
      const { data: text, metadata: about } = isJsonObject(damaged) ? damaged : {};
      if (typeof text === 'string' && typeof about === 'string') {
        return { ...place, data: text, metadata: about };
      }
    }
  }
  throw new ArchiveError('damaged', `line ${number} is not an event`);
}
