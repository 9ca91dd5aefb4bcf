import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Request, RequestHandler } from 'express';

/** The header that carries a ticket: the cause of an extension's request. Tickets that were not issued are ignored. */
export const CAUSE_HEADER = 'x-svc-cause';

/** Carries the ticket; tickets that were not issued are ignored. */
const HEADER = 'x-svc-inner';

/** A request that the service makes to itself. */
export interface InnerRequest {
  /** Headers to send: the ticket, and the id and the reason of the client's request. */
  readonly headers: Readonly<Record<string, string>>;
  /** Must be called once the request was answered or has failed. */
  readonly over: () => void;
}

/**
 * Requests that this process makes to itself to answer its clients. A ticket, valid once, gives each the client's
 * address. The first inner request for a client's request is not counted against the limits, because the client's
 * request was counted. The others are counted, so that a request to an extension cannot bypass the limits.
 */
export class InnerRequests {
  readonly #announced = new Map<
    string,
    { readonly address: string | undefined; readonly isCounted: boolean }
  >();
  readonly #used = new WeakSet<IncomingMessage>();
  readonly #counted = new WeakSet<IncomingMessage>();

  /** @param outer the client's request */
  announce(outer: Request): InnerRequest {
    const ticket = randomUUID();
    this.#announced.set(ticket, { address: outer.ip, isCounted: !this.#used.has(outer) });
    this.#used.add(outer);
    const id = outer.res?.getHeader('X-Request-Id');
    const reason = outer.headers['x-reason'];
    return {
      headers: {
        [HEADER]: ticket,
        ...(typeof id === 'string' ? { 'x-request-id': id } : {}),
        ...(typeof reason === 'string' ? { 'x-reason': reason } : {}),
      },
      over: () => void this.#announced.delete(ticket),
    };
  }

  /** The middleware that recognizes inner requests. It must precede any other that reads the address. */
  recognize: RequestHandler = (request, _response, next) => {
    const ticket = String(request.headers[HEADER]);
    const announced = this.#announced.get(ticket);
    if (announced !== undefined) {
      this.#announced.delete(ticket);
      // The socket's address is this process's own.
      Object.defineProperty(request, 'ip', { value: announced.address, configurable: true });
      if (announced.isCounted) this.#counted.add(request);
    }
    next();
  };

  /** Whether a request was counted with the client's. */
  isCounted(request: IncomingMessage): boolean {
    return this.#counted.has(request);
  }
}
