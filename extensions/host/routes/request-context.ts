import type { NextFunction, Request, Response } from 'express';
import { nameBasedId } from '../../../domain/ids.ts';
import type { ExtensionCaller } from '../../contract.ts';
import type { Extension } from '../extension.ts';
import type { RouteLabel } from './route-labels.ts';

/** A property costs less garbage collection than a `WeakMap`. */
const REQUEST_CONTEXT = Symbol('request context');

interface WithContext {
  [REQUEST_CONTEXT]?: RequestContext;
}

/** The host's record of a request to an extension, from its arrival to the end of its response. */
export class RequestContext {
  readonly extension: Extension;
  /** The path below `/ext/<id>`, without the query. */
  readonly subpath: string;
  readonly request: Request;
  readonly response: Response;
  /** Passes the request on, or an error. */
  readonly next: NextFunction;
  /** By `performance.now()`. */
  readonly arrivedAt = performance.now();
  /** null before admission, and for a public path without a token. */
  caller: ExtensionCaller | null = null;
  /** Whether its token has been checked. */
  isAdmitted = false;
  /** Set if the host answers it itself. */
  hostLabel: RouteLabel | null = null;
  /** By `performance.now()`: when its handler times out. */
  deadline = Number.POSITIVE_INFINITY;
  /** Whether its handler timed out and the host responded. */
  hasTimedOut = false;

  /** The command of its `Idempotency-Key`, while it runs. */
  #keyedCommand: { readonly id: string; parts: number } | null = null;

  constructor(
    extension: Extension,
    subpath: string,
    request: Request,
    response: Response,
    next: NextFunction,
  ) {
    this.extension = extension;
    this.subpath = subpath;
    this.request = request;
    this.response = response;
    this.next = next;
    (request as WithContext)[REQUEST_CONTEXT] = this;
  }

  /** The context of a request; undefined for a request that was not routed to an extension. */
  static of(request: Request): RequestContext | undefined {
    const context = (request as WithContext | null | undefined)?.[REQUEST_CONTEXT];
    // A copy of the request inherits the property.
    return context?.request === request ? context : undefined;
  }

  /** Runs a command. @param commandId of its key; null without a key */
  async runCommand<T>(commandId: string | null, call: () => Promise<T>): Promise<T> {
    this.#keyedCommand = commandId === null ? null : { id: commandId, parts: 0 };
    try {
      return await call();
    } finally {
      this.#keyedCommand = null;
    }
  }

  /** Id of the command's next step, the same in each repetition; undefined without a key. */
  nextCommandId(): string | undefined {
    if (this.#keyedCommand === null) return undefined;
    this.#keyedCommand.parts += 1;
    return nameBasedId('command', this.#keyedCommand.id, String(this.#keyedCommand.parts));
  }

  /** Sets `X-Event-Position` after a write on its behalf, as every command does. */
  setEventPosition(position: string): void {
    if (!this.response.headersSent) this.response.setHeader('X-Event-Position', position);
  }

  /** Metrics label of its route; `other` before it has been routed. */
  get label(): RouteLabel {
    return this.hostLabel ?? this.extension.labels.of(this.request);
  }
}
