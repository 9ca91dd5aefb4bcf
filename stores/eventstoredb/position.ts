import type { Position as LogPosition } from '@eventstore/db-client';
import { BEGINNING, EventStoreError, type Position } from '../../domain/event-store.ts';

/** Sent by servers before 22.6 for an unknown position: -1 as an unsigned number. */
const UNKNOWN = 0xffff_ffff_ffff_ffffn;

const FORMAT = /^[0-9a-f]{32}$/;

/**
 * A place in `$all` as a string: commit and prepare position, 16 hexadecimal digits each, so strings sort as the log
 * does. Events of one transaction share the commit position, so both are needed to continue after one of them.
 */
export function toPosition(place: LogPosition): Position {
  return hex(place.commit) + hex(place.prepare);
}

/** Whether a string is a position written by {@link toPosition}. */
export function isPosition(text: string): boolean {
  return FORMAT.test(text);
}

/**
 * The place that a position stands for.
 * @throws EventStoreError `INVALID_EVENT` for another string, such as a position of another engine
 */
export function fromPosition(position: Position): LogPosition | 'start' {
  if (position === BEGINNING) return 'start';
  if (!isPosition(position)) {
    throw new EventStoreError('INVALID_EVENT', `not a position of this log: '${position}'`);
  }
  return {
    commit: BigInt(`0x${position.slice(0, 16)}`),
    prepare: BigInt(`0x${position.slice(16)}`),
  };
}

/** Whether the server sent a position. Servers before 22.6 never do when a stream is read. */
export function isKnown(place: LogPosition | undefined): place is LogPosition {
  return place !== undefined && place.commit !== UNKNOWN && place.prepare !== UNKNOWN;
}

/** The later of two positions. */
export function laterPosition(one: Position, other: Position): Position {
  return one > other ? one : other;
}

function hex(value: bigint): string {
  return value.toString(16).padStart(16, '0');
}
