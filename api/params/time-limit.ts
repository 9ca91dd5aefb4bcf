import { createContext, Script, type Context } from 'node:vm';

/** The limit in milliseconds, far more than a reasonable schema takes even on a busy machine. */
const LIMIT = 1000;

/** Work that had little of the processor in its time is done again, at most so many times in all. */
const MAX_ATTEMPTS = 3;

/** Created at the first use, because its creation would delay the start. */
let place: Context | undefined;
const script = new Script('work()');

/**
 * Does synchronous work that a client can make slow, such as a `pattern` with exponential backtracking. Slow work is
 * stopped, because it blocks all other requests.
 * @param work without side effects, because it is repeated if the machine stood still during it
 * @throws the error of `late` after a second, or three if the machine stood still; errors of the work
 */
export function withinTime<T>(work: () => T, late: () => Error): T {
  const context = (place ??= createContext());
  let result: { readonly value: T } | undefined;
  context['work'] = (): void => void (result = { value: work() });
  for (let attempt = 1; result === undefined; attempt += 1) {
    const before = process.cpuUsage();
    try {
      script.runInContext(context, { timeout: LIMIT });
    } catch (error) {
      const { code } = error as { readonly code?: unknown };
      if (code !== 'ERR_SCRIPT_EXECUTION_TIMEOUT') throw error;
      const { user, system } = process.cpuUsage(before);
      const hadProcessor = (user + system) / 1000 > LIMIT / 10;
      if (hadProcessor || attempt === MAX_ATTEMPTS) throw late();
    }
  }
  return result.value;
}
