/**
 * Bounds the work of evaluating rules. Work counts in steps of about ten nanoseconds, not by a clock, so the outcome is
 * the same on every machine. Cached zone data costs as many steps as at its first use, so an accepted rule stays
 * accepted.
 *
 * Evaluation is synchronous, so one meter at a time suffices.
 */

/** Work under {@link limitWork} exceeded its limit. */
export class WorkLimitError extends Error {
  override readonly name = 'WorkLimitError';
}

/** The steps of one evaluation. */
class Meter {
  readonly limit: number;
  steps = 0;
  /** Parts that were charged already and cost nothing again. */
  readonly #paid = new Map<object, Set<number>>();

  constructor(limit: number) {
    this.limit = limit;
  }

  isFirst(owner: object, part: number): boolean {
    let parts = this.#paid.get(owner);
    if (parts === undefined) this.#paid.set(owner, (parts = new Set()));
    if (parts.has(part)) return false;
    parts.add(part);
    return true;
  }
}

let meter: Meter | null = null;

/** Charges steps to the current evaluation. @throws WorkLimitError when the limit is exceeded */
export function spend(steps: number): void {
  if (meter === null) return;
  meter.steps += steps;
  if (meter.steps > meter.limit) {
    throw new WorkLimitError(`takes more than ${meter.limit} steps`);
  }
}

/** Whether the current evaluation has no steps left. */
export function isExhausted(): boolean {
  return meter !== null && meter.steps >= meter.limit;
}

/** Whether work is being counted. */
export function isMetered(): boolean {
  return meter !== null;
}

/** Like {@link spend}, but charges each part of an owner only once per evaluation. */
export function spendOnce(owner: object, part: number, steps: number): void {
  if (meter?.isFirst(owner, part) === true) spend(steps);
}

/**
 * Runs a function that may take at most `limit` steps. Within another limit, it may not take more than that limit
 * leaves.
 * @throws WorkLimitError when it takes more
 */
export function limitWork<T>(limit: number, run: () => T): T {
  const outer = meter;
  const left = outer === null ? Infinity : Math.max(0, outer.limit - outer.steps);
  const inner = (meter = new Meter(Math.min(limit, left)));
  try {
    return run();
  } finally {
    meter = outer;
    if (outer !== null) outer.steps += inner.steps;
  }
}
