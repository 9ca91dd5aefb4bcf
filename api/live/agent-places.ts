import type { Telemetry } from '../../observability/telemetry.ts';
import { HttpError } from '../errors.ts';

/** The seconds after which a rejected client may try again. */
const RETRY_AFTER = '5';

/** Limits the live streams that each agent may have open in this process. */
export class AgentPlaces {
  readonly #telemetry: Pick<Telemetry, 'count'>;
  readonly #open = new Map<string, number>();

  constructor(telemetry: Pick<Telemetry, 'count'>) {
    this.#telemetry = telemetry;
  }

  /**
   * Takes a place.
   * @param limit `SVC_LIVE_STREAMS_PER_AGENT`; 0: no limit
   * @returns a function that gives the place back; only its first call counts
   * @throws HttpError 429 if the agent has reached the limit
   */
  take(agentId: string, limit: number): () => void {
    const open = this.#open.get(agentId) ?? 0;
    if (limit > 0 && open >= limit) {
      this.#telemetry.count('limit_refusals_total', { limit: 'live_streams' });
      const message = `you have ${open} live streams open, the most for an agent: close one first`;
      const details = { limit, setting: 'SVC_LIVE_STREAMS_PER_AGENT' };
      throw new HttpError('rate_limit_exceeded', message, details, { 'Retry-After': RETRY_AFTER });
    }
    this.#open.set(agentId, open + 1);
    return () => {
      const left = (this.#open.get(agentId) ?? 1) - 1;
      if (left > 0) this.#open.set(agentId, left);
      else this.#open.delete(agentId);
    };
  }
}
