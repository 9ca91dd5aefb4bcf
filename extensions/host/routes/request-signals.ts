import type { Request } from 'express';
import type { Extension } from '../extension.ts';

/** Signals that tell handlers that nobody waits for their answers any more; made only for those who ask. */
export class RequestSignals {
  readonly #made = new WeakMap<Request, AbortController>();
  readonly #underWay = new Map<Extension, Set<AbortController>>();

  /** The signal of a request that was led to an extension. @param isOver nobody waits for it already */
  of(extension: Extension, request: Request, isOver: boolean): AbortSignal {
    const known = this.#made.get(request);
    if (known !== undefined) return known.signal;
    const made = new AbortController();
    this.#made.set(request, made);
    if (isOver || extension.state === 'failed') {
      made.abort();
      return made.signal;
    }
    const others = this.#underWay.get(extension) ?? new Set();
    this.#underWay.set(extension, others.add(made));
    return made.signal;
  }

  /** Nobody waits for the answer any more. @param reason why; null: it was given */
  end(extension: Extension, request: Request, reason: Error | null): void {
    const made = this.#made.get(request);
    if (made === undefined) return;
    this.#underWay.get(extension)?.delete(made);
    if (reason !== null) made.abort(reason);
  }

  /** An extension is told to end. */
  endOf(extension: Extension): void {
    const all = this.#underWay.get(extension) ?? [];
    this.#underWay.delete(extension);
    for (const made of all) made.abort();
  }
}
