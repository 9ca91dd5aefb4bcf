import { createContext, Script, type Context } from 'node:vm';

/** Milliseconds: far more than an honest schema takes, also on a busy machine. */
const LIMIT = 1000;

/** Made at the first use, as it would delay the start. */
let place: Context | undefined;
const script = new Script('work()');

/**
 * Does synchronous work that a client can make long, such as a `pattern` with exponential backtracking. It stops the
 * work, as no other request is served meanwhile.
 * @throws the error of `late` after a second; what the work throws
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
