import { BEGINNING, type Position } from '../../domain/event-store.ts';
import { laterPosition } from './position.ts';

/**
 * The furthest position that this process has seen. The server does not say whether an append was a repetition. A
 * position earlier than one seen before the call shows a repetition. (A repetition of another process's append that
 * this one has not seen yet counts as new.)
 */
export class HighWaterMark {
  #seen: Position = BEGINNING;
  #anchor: { readonly position: Position; readonly id: string } | undefined;
  #started: Promise<void> | undefined;

  get seen(): Position {
    return this.#seen;
  }

  /** The furthest event that was read, which identifies the log. */
  get anchor(): { readonly position: Position; readonly id: string } | undefined {
    return this.#anchor;
  }

  /** Whether reads are known to come from the same log as before. If not, no position is noted. */
  isCertain = true;

  note(position: Position): void {
    if (!this.isCertain) return;
    this.#seen = laterPosition(this.#seen, position);
  }

  noteEvent(position: Position, id: string): void {
    this.note(position);
    if (this.isCertain && position > (this.#anchor?.position ?? BEGINNING))
      this.#anchor = { position, id };
  }

  /** Finds the end of the log, once. Appends of earlier processes lie before it. */
  async start(readEnd: () => Promise<Position>): Promise<void> {
    this.#started ??= readEnd().then((position) => this.note(position));
    try {
      await this.#started;
    } catch (error) {
      this.#started = undefined;
      throw error;
    }
  }
}
