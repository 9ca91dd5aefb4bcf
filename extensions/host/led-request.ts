import type { NextFunction, Request, Response } from 'express';
import type { ExtensionCaller } from '../contract.ts';
import type { Extension } from './extension.ts';
import type { RouteLabel } from './route-labels.ts';

/** Where a request has what was led; by a weak map it would cost as much again, in collecting garbage. */
const LED = Symbol('led');

/** A request that was led to an extension: all that the host knows of it, from its arrival to the end of its answer. */
export class LedRequest {
  readonly extension: Extension;
  /** What stands behind `/ext/<id>` in its path, without the query. */
  readonly rest: string;
  readonly request: Request;
  readonly response: Response;
  /** Answers an error, or that there is nothing here. */
  readonly next: NextFunction;
  /** `performance.now()` at its arrival. */
  readonly begun = performance.now();
  /** Who calls; null where it needs no token and brought none, and before it was admitted. */
  caller: ExtensionCaller | null = null;
  /** It may come to the extension: its token has been looked at. */
  isAdmitted = false;
  /** Set where no route of the extension's router takes it, but the host itself. */
  named: RouteLabel | null = null;
  /** `performance.now()` at which the time of its handler is over. */
  due = Number.POSITIVE_INFINITY;
  /** The time of its handler is over, and it was answered in its place. */
  isOver = false;

  constructor(
    extension: Extension,
    rest: string,
    request: Request,
    response: Response,
    next: NextFunction,
  ) {
    this.extension = extension;
    this.rest = rest;
    this.request = request;
    this.response = response;
    this.next = next;
    (request as { [LED]?: LedRequest })[LED] = this;
  }

  /** What a request was led by; nothing where it is no request that was. */
  static of(request: Request): LedRequest | undefined {
    const led = (request as { readonly [LED]?: LedRequest } | null | undefined)?.[LED];
    // What was copied from one is not that one.
    return led?.request === request ? led : undefined;
  }

  /** The label of the route that took it; `other` before. */
  get label(): RouteLabel {
    return this.named ?? this.extension.labels.of(this.request);
  }
}
