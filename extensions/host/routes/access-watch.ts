import { AsyncResource } from 'node:async_hooks';
import type { Admission } from './admission.ts';
import { silence } from './answer-limit.ts';
import type { LedRequest } from './led-request.ts';
import type { RequestSignals } from './request-signals.ts';

/** How often it is looked whether those who are being answered would still be let in. Milliseconds. */
const LOOK = 1_000;

/** Why the signal of a request is aborted. */
class AccessEnded extends Error {
  constructor() {
    super('the token does not count any more');
    this.name = 'AbortError';
  }
}

/**
 * Ends answers that go on, streams above all, once the token that let them in does not count any more: it was revoked,
 * has run out, or its agent was removed. One timer is for all of them.
 */
export class AccessWatch {
  readonly #admission: Pick<Admission, 'stillCounts'>;
  readonly #signals: RequestSignals;
  readonly #underWay = new Set<LedRequest>();
  #isArmed = false;
  /** In no request's asynchronous context: it is for those of all. */
  readonly #arm = AsyncResource.bind((): void => {
    this.#isArmed = true;
    setTimeout(() => void this.#look(), LOOK).unref();
  });

  constructor(admission: Pick<Admission, 'stillCounts'>, signals: RequestSignals) {
    this.#admission = admission;
    this.#signals = signals;
  }

  /** Watches over the answer to a request that was let in by a token. */
  begin(led: LedRequest): void {
    this.#underWay.add(led);
    if (!this.#isArmed) this.#arm();
  }

  /** It is answered, or nobody waits any more. */
  end(led: LedRequest): void {
    this.#underWay.delete(led);
  }

  async #look(): Promise<void> {
    for (const led of this.#underWay) {
      // What has not begun to be answered was asked for while the token counted.
      if (!led.response.headersSent || (await this.#admission.stillCounts(led))) continue;
      if (this.#underWay.delete(led)) this.#cutOff(led);
    }
    this.#isArmed = false;
    if (this.#underWay.size > 0) this.#arm();
  }

  #cutOff({ extension, request, response }: LedRequest): void {
    this.#signals.end(extension, request, new AccessEnded());
    try {
      if (response.hasHeader('Content-Length')) {
        // It can't be ended before its end.
        response.destroy();
        return;
      }
      response.end();
      silence(response);
    } catch {
      // The extension has put its own code in the way: the others' answers are to be looked at all the same.
      request.socket.destroy();
    }
  }
}
