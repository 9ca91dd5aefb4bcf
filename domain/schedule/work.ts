/**
 * The work of evaluating rules, counted in steps of about ten nanoseconds, so that it can be bounded: a clock would
 * say something else on every machine, and each time. What a zone keeps of earlier questions does not count as less
 * work, so a rule that is taken once is always taken.
 *
 * Evaluation is synchronous, hence one meter at a time is enough.
 */

/** Thrown when what runs under {@link limitWork} takes more steps than it may. */
export class WorkExceeded extends Error {
  override readonly name = 'WorkExceeded';
}

/** What one evaluation has done. */
class Meter {
  readonly limit: number;
  steps = 0;
  /** What costs only once, however often it is asked. */
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

/** Tells of work that is done now. @throws WorkExceeded where it is too much */
export function spend(steps: number): void {
  if (meter === null) return;
  meter.steps += steps;
  if (meter.steps > meter.limit) {
    throw new WorkExceeded(`takes more than ${meter.limit} steps`);
  }
}

/** Whether what goes on now has no step left. */
export function isExhausted(): boolean {
  return meter !== null && meter.steps >= meter.limit;
}

/** Whether work is counted at all. */
export function isMetered(): boolean {
  return meter !== null;
}

/** As {@link spend}, but for each part of an owner only the first time within a measurement. */
export function spendOnce(owner: object, part: number, steps: number): void {
  if (meter?.isFirst(owner, part) === true) spend(steps);
}

/**
 * Runs something that may take so many steps, or what is left where it is a part of something that is limited too.
 * @throws WorkExceeded once it takes more
 */
export function limitWork<T>(limit: number, run: () => T): T {
  const left = meter === null ? Infinity : Math.max(0, meter.limit - meter.steps);
  return metered(new Meter(Math.min(limit, left)), run);
}

/** Runs something and tells how many steps it took. */
export function measureWork<T>(run: () => T): { readonly result: T; readonly steps: number } {
  const own = new Meter(Infinity);
  const result = metered(own, run);
  return { result, steps: own.steps };
}

function metered<T>(own: Meter, run: () => T): T {
  const outer = meter;
  meter = own;
  try {
    return run();
  } finally {
    meter = outer;
    if (outer !== null) outer.steps += own.steps;
  }
}
