import type { Evaluated, Scope } from '../../../domain/pipeline/expression.ts';

/** The parts of a scope that differ between orders. They are small, except for items. */
export type OwnScope = Pick<Scope, 'now' | 'task' | 'run' | 'item' | 'index' | 'callback'>;

/** The parts that the orders of one run share. A thread keeps them, because they may be large. */
export type SharedScope = Pick<Scope, 'params' | 'event' | 'steps'>;

/** An order for a thread, which has one at a time. */
export type ToExpressionThread = {
  readonly texts: readonly string[];
} & (
  | {
      readonly kind: 'scope';
      readonly owner: string;
      readonly scope: OwnScope;
      /** The changes since the last order of this owner. */
      readonly shared: Partial<SharedScope>;
    }
  | { readonly kind: 'value'; readonly value: unknown }
);

/** The result of each expression, in the order of the texts, up to the first that failed. */
export type FromExpressionThread = readonly Evaluated[];

/** The most runs whose parts a thread keeps. */
const MAX_KEPT = 16;

/**
 * The runs whose parts a thread keeps, the last used at the end. The pool and the thread make the same changes in the
 * same order, so the pool knows which parts the thread has.
 */
export class KeptRuns<T> {
  readonly #kept = new Map<string, T>();

  /** Returns the entry of a run and marks it as the last used; undefined if it is not kept. */
  use(owner: string): T | undefined {
    const entry = this.#kept.get(owner);
    if (entry !== undefined) this.keep(owner, entry);
    return entry;
  }

  keep(owner: string, entry: T): void {
    this.#kept.delete(owner);
    this.#kept.set(owner, entry);
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > MAX_KEPT && oldest !== undefined) this.#kept.delete(oldest);
  }
}
