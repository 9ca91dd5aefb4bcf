import { BEGINNING, EventStoreError, type Position } from '../../../domain/event-store.ts';

/** A position as a string of 16 digits, enough for every safe integer. */
export function formatPosition(position: number): Position {
  return position === 0 ? BEGINNING : String(position).padStart(16, '0');
}

/** Whether a string is a position of an event. */
export function isPosition(text: string): boolean {
  return /^\d{16}$/.test(text);
}

/** The number of a position. @throws EventStoreError `INVALID_EVENT` for a string that no log of this engine returned */
export function parsePosition(position: Position): number {
  if (position === BEGINNING) return 0;
  if (!isPosition(position)) {
    throw new EventStoreError('INVALID_EVENT', `not a position of this log: '${position}'`);
  }
  return Number(position);
}
