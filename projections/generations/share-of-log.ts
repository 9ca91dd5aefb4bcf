import { BEGINNING, type Position } from '../../domain/event-store.ts';

/** Digits that tell where a position is; what engines write behind them tells events of one transaction apart. */
const DIGITS = 16;

/**
 * How much of the log lies before a position, as far as it goes to another one, 0 to 1: for bars that show how far
 * something is, and for nothing else. Positions are opaque, but they are numbers of fixed width, of events or of bytes.
 * Times would tell less: a service that did nothing over night has nothing to fold of it.
 */
export function shareOfLog(position: Position, end: Position): number {
  if (position === BEGINNING || end === BEGINNING) return 0;
  const base = end.length > DIGITS ? 16 : 10;
  const share = numberOf(position, base) / numberOf(end, base);
  return Number.isFinite(share) ? Math.min(1, Math.max(0, share)) : 0;
}

const numberOf = (position: Position, base: number): number =>
  Number.parseInt(position.slice(0, DIGITS), base);
