import { serverProblemOf } from '../../domain/server-problem.ts';

/** `ok`: nothing to do; `warn`: it works, but not permanently or not well; `fault`: it does not work. */
export type Verdict = 'ok' | 'warn' | 'fault';

/** The result of one check. */
export interface Finding {
  /** The check: `disk`, `log`. */
  readonly check: string;
  readonly verdict: Verdict;
  /** What was found, in one line. */
  readonly found: string;
  /** What to do; null for nothing. */
  readonly advice: string | null;
}

export const ok = (check: string, found: string): Finding => {
  return { check, verdict: 'ok', found, advice: null };
};

export const warn = (check: string, found: string, advice: string): Finding => {
  return { check, verdict: 'warn', found, advice };
};

export const fault = (check: string, found: string, advice: string): Finding => {
  return { check, verdict: 'fault', found, advice };
};

/** The finding of a check that failed. If a server's problem is the reason, it has that problem's remedy. */
export function failedCheck(
  check: string,
  error: unknown,
  otherwise: { readonly found?: string; readonly advice: string },
): Finding {
  const problem = serverProblemOf(error);
  if (problem === null) {
    return fault(check, otherwise.found ?? wordsOf(error), otherwise.advice);
  }
  const outlook = problem.lasting ? '; this does not recover by itself' : '';
  return fault(check, `${wordsOf(problem)}${outlook}`, problem.remedy);
}

/** The first line of an error's message. */
export const wordsOf = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).split('\n', 1)[0] ?? '';
