import type { Position as LogPosition } from '@eventstore/db-client';
import { BEGINNING, EventStoreError, type Position } from '../../domain/event-store.ts';

/** What a server older than 22.6 sends where it has no position: -1, read as an unsigned number. */
const UNKNOWN = 0xffff_ffff_ffff_ffffn;

const FORMAT = /^[0-9a-f]{32}$/;

/**
 * A place in `$all` as text: commit and prepare position, 16 hexadecimal digits each, so that text
 * orders as the log does. Both are kept: the commit position alone is shared by the events of one
 * transaction, and reading on after it would lose some.
 */
export function toPosition(place: LogPosition): Position {
  return hex(place.commit) + hex(place.prepare);
}

/** Whether a text is a position as {@link toPosition} writes them. */
export function isPosition(text: string): boolean {
  return FORMAT.test(text);
}

/**
 * The place that a position means.
 * @throws EventStoreError `INVALID_EVENT` for text that {@link toPosition} did not write, such as a
 *   position of another engine
 */
export function fromPosition(position: Position): LogPosition | 'start' {
  if (position === BEGINNING) return 'start';
  if (!isPosition(position)) {
    throw new EventStoreError('INVALID_EVENT', `Not a position of this log: '${position}'`);
  }
  return {
    commit: BigInt(`0x${position.slice(0, 16)}`),
    prepare: BigInt(`0x${position.slice(16)}`),
  };
}

/** Whether the server said where an event stands. Before 22.6 none did so when reading a stream. */
export function isKnown(place: LogPosition | undefined): place is LogPosition {
  return place !== undefined && place.commit !== UNKNOWN && place.prepare !== UNKNOWN;
}

/** The later of two positions. */
export function later(one: Position, other: Position): Position {
  return one > other ? one : other;
}

function hex(value: bigint): string {
  return value.toString(16).padStart(16, '0');
}
