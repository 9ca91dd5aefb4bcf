import { execFile } from 'node:child_process';

/** The registry's answer about known vulnerabilities. */
export type Advisories =
  | { readonly kind: 'checked'; readonly vulnerable: readonly string[] }
  | { readonly kind: 'unavailable'; readonly reason: string };

/** The parts of `npm audit --json` that are read. */
interface AuditAnswer {
  readonly message?: unknown;
  readonly error?: { readonly summary?: unknown };
  readonly vulnerabilities?: Readonly<
    Record<string, { readonly severity: string; readonly range: string }>
  >;
}

/** Asks npm's registry about the production tree of a project. Never rejects. */
export function askRegistry(project: string): Promise<Advisories> {
  const args = ['audit', '--omit=dev', '--json'];
  return new Promise((resolve) => {
    const options = {
      cwd: project,
      maxBuffer: 64 * 1024 ** 2,
      shell: process.platform === 'win32',
    };
    // The exit code is 1 both for vulnerabilities and for a failed request.
    execFile('npm', args, options, (_error, stdout) => resolve(advisoriesIn(stdout)));
  });
}

/** What an output of `npm audit --json` says. */
export function advisoriesIn(output: string): Advisories {
  let answer: AuditAnswer;
  try {
    answer = JSON.parse(output) as AuditAnswer;
  } catch {
    return { kind: 'unavailable', reason: 'npm audit gave no answer' };
  }
  const { vulnerabilities, message, error } = answer;
  if (vulnerabilities === undefined) {
    const reasons = [message, error?.summary, 'npm audit gave no answer'];
    const isGiven = (each: unknown): each is string => typeof each === 'string' && each !== '';
    return { kind: 'unavailable', reason: reasons.filter(isGiven)[0] ?? '' };
  }
  const vulnerable = Object.entries(vulnerabilities).map(
    ([name, { severity, range }]) => `${name} ${range} has a known vulnerability (${severity})`,
  );
  return { kind: 'checked', vulnerable };
}
