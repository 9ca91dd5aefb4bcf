import type { Response } from 'express';
import { FairTurns } from '../access/fair-turns.ts';

/** How many large responses are built and sent at a time. Each holds up to 8 MiB of documents, and its JSON. */
const MAX_CONCURRENT = 4;

/** How long a slow client may keep others waiting. Milliseconds. */
const MAX_SENDING = 5_000;

/** Limits the memory of large responses. Only a few are read, serialized and sent at a time, and callers take turns. */
export class LargeResponses {
  readonly #turns: FairTurns;
  readonly #maxSending: number;

  /** @param maxSending milliseconds after which the turn ends even if the client has not received its response */
  constructor(maxConcurrent = MAX_CONCURRENT, maxSending = MAX_SENDING) {
    this.#turns = new FairTurns(maxConcurrent);
    this.#maxSending = maxSending;
  }

  /** Waits for a caller's turn. @returns a function that ends the turn once the client has received the response */
  async takeTurn(caller: string, response: Response): Promise<() => void> {
    const endTurn = await this.#turns.start(caller, Infinity);
    return () => afterSending(response, this.#maxSending, endTurn);
  }
}

/** Calls back once the system has taken the response, its client has left, or the time is over. */
function afterSending(response: Response, limit: number, call: () => void): void {
  // A response that fits into the socket's buffer has already been taken.
  if (response.closed || response.writableFinished || response.writableLength === 0) {
    call();
    return;
  }
  const end = (): void => {
    clearTimeout(timer);
    response.off('close', end);
    call();
  };
  const timer = setTimeout(end, limit);
  response.once('close', end);
}
