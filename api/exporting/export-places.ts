import { unavailable } from '../errors.ts';

/** Concurrent exports of a process, and of an agent: each holds a page of rows in memory. */
const MAX_EXPORTS = 8;
const MAX_PER_AGENT = 2;

/** Limits the concurrent exports. */
export class ExportPlaces {
  readonly #byAgent = new Map<string, number>();
  #size = 0;

  /** Running exports. */
  get size(): number {
    return this.#size;
  }

  /**
   * Takes a place.
   * @returns a function that releases the place; to be called once
   * @throws HttpError 503 if the process or the agent has no place left
   */
  take(agentId: string): () => void {
    const own = this.#byAgent.get(agentId) ?? 0;
    if (own >= MAX_PER_AGENT || this.#size >= MAX_EXPORTS) {
      const whose = own >= MAX_PER_AGENT ? 'of this agent' : 'of this process';
      const message = `too many exports ${whose} are running; try again when one has ended`;
      throw unavailable('exports', message);
    }
    this.#byAgent.set(agentId, own + 1);
    this.#size += 1;
    return () => {
      this.#size -= 1;
      const left = (this.#byAgent.get(agentId) ?? 1) - 1;
      if (left === 0) this.#byAgent.delete(agentId);
      else this.#byAgent.set(agentId, left);
    };
  }
}
