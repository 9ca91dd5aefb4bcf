import type { Request } from 'express';
import type { Extension } from '../extension.ts';

/** Signals for handlers that are aborted when nobody waits for the response. Created on request. */
export class RequestSignals {
  readonly #controllers = new WeakMap<Request, AbortController>();
  readonly #active = new Map<Extension, Set<AbortController>>();

  /** The signal of a request. @param isFinal whether its response has ended */
  of(extension: Extension, request: Request, isOver: boolean): AbortSignal {
    const existing = this.#controllers.get(request);
    if (existing !== undefined) return existing.signal;
    const controller = new AbortController();
    this.#controllers.set(request, controller);
    if (isOver || extension.state === 'failed') {
      controller.abort();
      return controller.signal;
    }
    const active = this.#active.get(extension) ?? new Set();
    this.#active.set(extension, active.add(controller));
    return controller.signal;
  }

  /** The response has ended. @param reason for aborting; null if it was complete */
  end(extension: Extension, request: Request, reason: Error | null): void {
    const controller = this.#controllers.get(request);
    if (controller === undefined) return;
    this.#active.get(extension)?.delete(controller);
    if (reason !== null) controller.abort(reason);
  }

  /** Aborts active signals of an extension that is being ended. */
  abortAll(extension: Extension): void {
    const active = this.#active.get(extension) ?? [];
    this.#active.delete(extension);
    for (const controller of active) controller.abort();
  }
}
