import { AsyncResource } from 'node:async_hooks';
import type { Admission } from './admission.ts';
import { muteResponse } from './response-deadline.ts';
import type { RequestContext } from './request-context.ts';
import type { RequestSignals } from './request-signals.ts';

/** How often tokens of long responses are checked, in milliseconds. */
const CHECK_INTERVAL_MS = 1_000;

/** Reason with which the signal of a request is aborted. */
class AccessEndedError extends Error {
  constructor() {
    super('the token is no longer valid');
    this.name = 'AbortError';
  }
}

/**
 * Ends long responses, such as streams, once the token of their request is no longer valid. One timer serves all
 * requests.
 */
export class AccessWatch {
  readonly #admission: Pick<Admission, 'isStillAllowed'>;
  readonly #signals: RequestSignals;
  readonly #responses = new Set<RequestContext>();
  #isArmed = false;
  /** Bound outside any request's async context, as the timer serves all of them. */
  readonly #arm = AsyncResource.bind((): void => {
    this.#isArmed = true;
    setTimeout(() => void this.#check(), CHECK_INTERVAL_MS).unref();
  });

  constructor(admission: Pick<Admission, 'isStillAllowed'>, signals: RequestSignals) {
    this.#admission = admission;
    this.#signals = signals;
  }

  /** Starts watching the response to a request with a token. */
  watch(context: RequestContext): void {
    this.#responses.add(context);
    if (!this.#isArmed) this.#arm();
  }

  unwatch(context: RequestContext): void {
    this.#responses.delete(context);
  }

  async #check(): Promise<void> {
    for (const context of this.#responses) {
      // Without headers sent, it is not yet a long response.
      if (!context.response.headersSent) continue;
      const isAllowed = await this.#admission.isStillAllowed(context);
      if (!isAllowed && this.#responses.delete(context)) this.#end(context);
    }
    this.#isArmed = false;
    if (this.#responses.size > 0) this.#arm();
  }

  #end({ extension, request, response }: RequestContext): void {
    this.#signals.end(extension, request, new AccessEndedError());
    try {
      if (response.hasHeader('Content-Length')) {
        // A response of fixed length cannot end early.
        response.destroy();
        return;
      }
      response.end();
      muteResponse(response);
    } catch {
      // The extension has replaced methods of the response. Other responses must still be checked.
      request.socket.destroy();
    }
  }
}
