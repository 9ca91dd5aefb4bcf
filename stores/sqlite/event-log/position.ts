import { BEGINNING, EventStoreError, type Position } from '../../../domain/event-store.ts';

/** A number of the log as the port's text: 16 digits, enough for every number that is exact. */
export function formatPosition(position: number): Position {
  return position === 0 ? BEGINNING : String(position).padStart(16, '0');
}

/** Whether a text is a position as {@link formatPosition} writes those of events. */
export function isPosition(text: string): boolean {
  return /^\d{16}$/.test(text);
}

/**
 * The number of a position.
 *
 * @throws EventStoreError `INVALID_EVENT` for a text that no log of this engine gave out
 */
export function parsePosition(position: Position): number {
  if (position === BEGINNING) return 0;
  if (!isPosition(position)) {
    throw new EventStoreError('INVALID_EVENT', `not a position of this log: '${position}'`);
  }
  return Number(position);
}
