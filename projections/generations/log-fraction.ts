import { BEGINNING, type Position } from '../../domain/event-store.ts';

/**
 * The digits of a position that locate it in the log. An engine may append more digits to order the events of a
 * transaction.
 */
const DIGITS = 16;

/**
 * The fraction of the log, up to `end`, that lies before a position: 0 to 1. Only for progress bars: positions are
 * opaque, but all engines use numbers of fixed width. Times would be worse: an idle night has nothing to fold.
 */
export function logFraction(position: Position, end: Position): number {
  if (position === BEGINNING || end === BEGINNING) return 0;
  const base = end.length > DIGITS ? 16 : 10;
  const number = (at: Position): number => Number.parseInt(at.slice(0, DIGITS), base);
  const fraction = number(position) / number(end);
  return Number.isFinite(fraction) ? Math.min(1, Math.max(0, fraction)) : 0;
}
