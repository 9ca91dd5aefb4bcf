/** From nothing to do to what keeps the service from doing its work. */
const verdicts = ['ok', 'warn', 'fault'] as const;
export type Verdict = (typeof verdicts)[number];

/** What one look has found. */
export interface Finding {
  /** What was looked at: `disk`, `log`. */
  readonly check: string;
  readonly verdict: Verdict;
  /** What was found, in one line. */
  readonly found: string;
  /** What to do about it; null where nothing is to be done. */
  readonly advice: string | null;
}

/** All is as it should be. */
export const ok = (check: string, found: string): Finding => ({
  check,
  verdict: 'ok',
  found,
  advice: null,
});

/** It works, but not for ever, or not as well as it could. */
export const warn = (check: string, found: string, advice: string): Finding => ({
  check,
  verdict: 'warn',
  found,
  advice,
});

/** Something does not work, or is not as the log says. */
export const fault = (check: string, found: string, advice: string): Finding => ({
  check,
  verdict: 'fault',
  found,
  advice,
});

/** What an error says, in one line. */
export const wordsOf = (error: unknown): string =>
  (error instanceof Error ? error.message : String(error)).split('\n', 1)[0] ?? '';
