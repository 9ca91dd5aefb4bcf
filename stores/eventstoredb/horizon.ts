import { BEGINNING, type Position } from '../../domain/event-store.ts';
import { later } from './position.ts';

/**
 * The furthest position that this process has seen. The server does not say whether an append was a
 * repetition of an earlier one; an answer that lies behind what was seen before the call was one.
 * (What another process appended under the same ids and this one has not yet heard of counts as new.)
 */
export class Horizon {
  #seen: Position = BEGINNING;
  #anchor: { readonly position: Position; readonly id: string } | undefined;
  #started: Promise<void> | undefined;

  get seen(): Position {
    return this.#seen;
  }

  /** The furthest event that was read, which says which log this is. */
  get anchor(): { readonly position: Position; readonly id: string } | undefined {
    return this.#anchor;
  }

  /** Whether it is known that what is read is of the same log as what was: else it is not noted. */
  isCertain = true;

  note(position: Position): void {
    if (!this.isCertain) return;
    this.#seen = later(this.#seen, position);
  }

  /** Notes an event that was read, at its place. */
  noteEvent(position: Position, id: string): void {
    this.note(position);
    if (this.isCertain && position > (this.#anchor?.position ?? BEGINNING))
      this.#anchor = { position, id };
  }

  /** Looks where the log ends, once; appends of earlier processes lie behind that. */
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
