import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Request, RequestHandler } from 'express';

/** Carries the ticket; a client that sends one of its own makes nothing of it. */
const HEADER = 'x-svc-inner';

/** A request that is about to be made, for the one that is being answered. */
export interface InnerRequest {
  /** To send along: the ticket, and of the request that it is made for the id, and the reason where it gave one. */
  readonly headers: Readonly<Record<string, string>>;
  /** To be called once it is answered, or has failed. */
  readonly over: () => void;
}

/**
 * Requests that this process makes to itself to answer those of its clients. Each is announced before, and carries a
 * ticket that counts once: it is then known as one of the client, by the client's address. The first that is made for
 * a client's request is not counted against the limits, as that request was; the others are, so that nobody gets more
 * by one request to an extension than by many to the service.
 */
export class InnerRequests {
  readonly #announced = new Map<
    string,
    { readonly address: string | undefined; counted: boolean }
  >();
  readonly #used = new WeakSet<IncomingMessage>();
  readonly #counted = new WeakSet<IncomingMessage>();

  /** @param outer the client's request, as Express has it */
  announce(outer: Request): InnerRequest {
    const ticket = randomUUID();
    this.#announced.set(ticket, { address: outer.ip, counted: !this.#used.has(outer) });
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

  /** The middleware that knows them, before any other that asks for the address. */
  recognize: RequestHandler = (request, _response, next) => {
    const ticket = request.headers[HEADER];
    const announced = typeof ticket === 'string' ? this.#announced.get(ticket) : undefined;
    if (announced !== undefined && typeof ticket === 'string') {
      this.#announced.delete(ticket);
      const { address, counted } = announced;
      // In place of the address that Express finds at the socket, which is this process's own.
      Object.defineProperty(request, 'ip', { value: address, configurable: true });
      if (counted) this.#counted.add(request);
    }
    next();
  };

  /** Whether a request was counted with the one that it is made for. */
  isCounted(request: IncomingMessage): boolean {
    return this.#counted.has(request);
  }
}
