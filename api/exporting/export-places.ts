import { unavailable } from '../errors.ts';

/** Exports that a process answers at a time, and those of one agent among them: each holds a page of rows. */
const MOST = 8;
const MOST_OF_AGENT = 2;

/** Bounds how many exports are under way at a time. */
export class ExportPlaces {
  readonly #taken = new Map<string, number>();
  #count = 0;

  /** How many are taken. */
  get size(): number {
    return this.#count;
  }

  /**
   * Takes a place.
   * @returns gives it back; a second call does nothing
   * @throws HttpError 503 where the process, or the agent, has as many as it may have
   */
  take(agentId: string): () => void {
    const own = this.#taken.get(agentId) ?? 0;
    if (own >= MOST_OF_AGENT || this.#count >= MOST) {
      const whose = own >= MOST_OF_AGENT ? 'of this agent' : 'of this process';
      const message = `too many exports ${whose} are running; try again when one has ended`;
      throw unavailable('exports', message);
    }
    this.#taken.set(agentId, own + 1);
    this.#count += 1;
    let isTaken = true;
    return () => {
      if (!isTaken) return;
      isTaken = false;
      this.#count -= 1;
      const left = (this.#taken.get(agentId) ?? 1) - 1;
      if (left === 0) this.#taken.delete(agentId);
      else this.#taken.set(agentId, left);
    };
  }
}
