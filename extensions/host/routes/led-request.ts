import type { NextFunction, Request, Response } from 'express';
import { nameBasedId } from '../../../domain/ids.ts';
import type { ExtensionCaller } from '../../contract.ts';
import type { Extension } from '../extension.ts';
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

  /** The command that its Idempotency-Key stands for, while that is carried out. */
  #command: { readonly id: string; parts: number } | null = null;

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

  /** Carries out what is a command of a key's; null where it is of none. */
  async carryOut<T>(commandId: string | null, call: () => Promise<T>): Promise<T> {
    this.#command = commandId === null ? null : { id: commandId, parts: 0 };
    try {
      return await call();
    } finally {
      this.#command = null;
    }
  }

  /** Of the next thing that its command does: the same in each repetition. Nothing where it has no key. */
  nextCommandId(): string | undefined {
    if (this.#command === null) return undefined;
    this.#command.parts += 1;
    return nameBasedId('command', this.#command.id, String(this.#command.parts));
  }

  /** Something was done to the service for it: its answer says how far the log is then, as that of every command does. */
  committed(position: string): void {
    if (!this.response.headersSent) this.response.setHeader('X-Event-Position', position);
  }

  /** The label of the route that took it; `other` before. */
  get label(): RouteLabel {
    return this.named ?? this.extension.labels.of(this.request);
  }
}
