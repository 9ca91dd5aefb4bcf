import type { Position } from '../../domain/event-store.ts';
import type { LogEntry, LogPiece } from '../../domain/log-engine.ts';

/** Limits of the window, in bytes. */
export interface WindowLimits {
  /** How much is kept for new followers after all present ones have passed it. */
  readonly kept: number;
  /** How much is kept for slow followers. Beyond it, they read the log themselves. */
  readonly most: number;
}

/** Approximately how many entries a follower gets at once. */
const MAX_HANDED = 2_000;

/** The window: the recent end of the log in memory. */
export class RecentEvents {
  readonly #limits: WindowLimits;
  readonly #pieces: LogPiece[] = [];
  /** The window's bounds; null while the end of the log is unknown. */
  #start: Position | null = null;
  #end: Position = '';
  #bytes = 0;

  constructor(limits: WindowLimits) {
    this.#limits = limits;
  }

  /** Empties the window. It then starts at a position, or with null is unknown. */
  restart(at: Position | null): void {
    this.#pieces.length = 0;
    this.#bytes = 0;
    this.#start = at;
    this.#end = at ?? '';
  }

  /**
   * Adds the next piece, and forgets pieces beyond the limits.
   * @param slowest the position of the slowest follower in the window
   */
  add(piece: LogPiece, slowest: () => Position | undefined): void {
    this.#bytes += sizeOf(piece.entries);
    this.#end = piece.upTo;
    const last = this.#pieces.at(-1);
    // Only the position moves.
    if (piece.entries.length === 0 && last !== undefined) {
      this.#pieces[this.#pieces.length - 1] = { entries: last.entries, upTo: piece.upTo };
    } else {
      this.#pieces.push(piece);
    }
    if (this.#bytes > this.#limits.kept) this.#trim(slowest());
  }

  /** Whether the end of the log is known. */
  get hasBegun(): boolean {
    return this.#start !== null;
  }

  /** Whether everything after a position is in the window. */
  holds(position: Position): boolean {
    return this.#start !== null && position >= this.#start;
  }

  /** The end of the window, which is the known end of the log. */
  get end(): Position {
    return this.#end;
  }

  /**
   * The entries after a position that the window {@link holds}, at most about two thousand. They may start before the
   * position if a follower has itself read up to the middle of a piece.
   */
  after(position: Position): LogPiece {
    const first = this.#indexAfter(position);
    const piece = this.#pieces[first];
    if (piece === undefined) return { entries: [], upTo: position };
    if (first === this.#pieces.length - 1) return piece;
    const entries: LogEntry[] = [];
    let { upTo } = piece;
    for (
      let index = first;
      index < this.#pieces.length && entries.length < MAX_HANDED;
      index += 1
    ) {
      const next = this.#pieces[index];
      if (next === undefined) break;
      for (const entry of next.entries) entries.push(entry);
      ({ upTo } = next);
    }
    return { entries, upTo };
  }

  /** Index of the first piece that reaches beyond a position; the number of pieces if none does. */
  #indexAfter(position: Position): number {
    let [low, high] = [0, this.#pieces.length];
    if (position >= this.#end) return high;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#pieces[middle]?.upTo ?? '') > position) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  #trim(slowest: Position | undefined): void {
    const { kept, most } = this.#limits;
    let drop = 0;
    for (const piece of this.#pieces) {
      // The last one stays, because it marks the end.
      if (this.#bytes <= kept || drop + 1 >= this.#pieces.length) break;
      if (this.#bytes <= most && slowest !== undefined && slowest < piece.upTo) break;
      this.#bytes -= sizeOf(piece.entries);
      this.#start = piece.upTo;
      drop += 1;
    }
    if (drop > 0) this.#pieces.splice(0, drop);
  }
}

/** The size of entries, in bytes. */
export function sizeOf(entries: readonly LogEntry[]): number {
  let bytes = 0;
  for (const { size } of entries) bytes += size;
  return bytes;
}
