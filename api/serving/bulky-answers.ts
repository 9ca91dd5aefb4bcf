import type { Response } from 'express';
import { FairTurns } from '../access/fair-turns.ts';

/** Answers with megabytes that are made and sent at a time. Each has up to 8 MiB of documents in memory, and its text. */
const AT_ONCE = 4;

/** How long a client that is slow to take its answer keeps others waiting. Milliseconds. */
const PATIENCE = 5_000;

/**
 * Bounds what of this process's memory is taken by large answers. However many ask for lists at once, few of these are
 * read, serialised and sent at a time, and of all callers each has its turn after the others. Health endpoints, and
 * whatever answers with little, wait for none of them.
 */
export class BulkyAnswers {
  readonly #turns: FairTurns;
  readonly #patience: number;

  /**
   * @param atOnce how many at a time; default 4
   * @param patience milliseconds for which a client may take its answer alone; default 5,000
   */
  constructor(atOnce = AT_ONCE, patience = PATIENCE) {
    this.#turns = new FairTurns(atOnce);
    this.#patience = patience;
  }

  /**
   * Makes an answer in its turn. Does nothing for a client that has left meanwhile.
   *
   * @param who the caller's id
   * @param make reads and sends it
   */
  async inTurn(who: string, response: Response, make: () => Promise<void>): Promise<void> {
    await this.#turns.take(who, Infinity, async () => {
      if (response.closed) return;
      await make();
      await sent(response, this.#patience);
    });
  }
}

/** Resolves once a response was handed over to the system, its client has left, or has taken too long. */
function sent(response: Response, patience: number): Promise<void> {
  // What fits into the socket's buffer is gone by now.
  if (response.closed || response.writableFinished || response.writableLength === 0) {
    return Promise.resolve();
  }
  return new Promise((resolve) => {
    const over = (): void => {
      clearTimeout(timer);
      response.off('close', over);
      resolve();
    };
    const timer = setTimeout(over, patience);
    response.once('close', over);
  });
}
