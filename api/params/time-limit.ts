import { createContext, Script, type Context } from 'node:vm';

/** The limit in milliseconds, far more than a reasonable schema takes even on a busy machine. */
const LIMIT = 1000;

/** Created at the first use, because its creation would delay the start. */
let place: Context | undefined;
const script = new Script('work()');

/**
 * Does synchronous work that a client can make slow, such as a `pattern` with exponential backtracking. Slow work is
 * stopped, because it blocks all other requests.
 * @throws the error of `late` after a second; errors of the work
 */
export function withinTime<T>(work: () => T, late: () => Error): T {
  const results: T[] = [];
  const context = (place ??= createContext());
  context['work'] = (): void => void results.push(work());
  try {
    script.runInContext(context, { timeout: LIMIT });
  } catch (error) {
    const { code } = error as { readonly code?: unknown };
    throw code === 'ERR_SCRIPT_EXECUTION_TIMEOUT' ? late() : error;
  }
  return results[0] as T;
}
