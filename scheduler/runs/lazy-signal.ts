/**
 * An abort signal that is created on first use. Creating one costs as much as the rest of a short run's bookkeeping, and
 * most short runs never use it.
 */
export class LazySignal {
  #controller: AbortController | null = null;
  #reason: Error | null = null;

  /** The same signal each time. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#reason !== null) this.#controller.abort(this.#reason);
    return this.#controller.signal;
  }

  get aborted(): boolean {
    return this.#reason !== null;
  }

  /** Only the first reason counts. */
  abort(reason: Error): void {
    this.#reason ??= reason;
    this.#controller?.abort(this.#reason);
  }
}
