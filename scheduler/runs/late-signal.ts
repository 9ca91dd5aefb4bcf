/**
 * A signal that is made when it is first asked for: making one costs as much as a short run's other bookkeeping, and most
 * short runs end without anybody looking at it.
 */
export class LateSignal {
  private controller: AbortController | null = null;
  private reason: Error | null = null;

  /** The same each time; aborted already where that has been said. */
  get signal(): AbortSignal {
    this.controller ??= new AbortController();
    if (this.reason !== null) this.controller.abort(this.reason);
    return this.controller.signal;
  }

  get aborted(): boolean {
    return this.reason !== null;
  }

  /** Only the first reason counts. */
  abort(reason: Error): void {
    this.reason ??= reason;
    this.controller?.abort(this.reason);
  }
}
