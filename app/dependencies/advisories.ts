import { execFile } from 'node:child_process';

/** The registry's response about known vulnerabilities. */
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

/** Asks npm's registry for vulnerabilities of a project's production dependencies. Never rejects. */
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

/** Parses the output of `npm audit --json`. */
export function advisoriesIn(output: string): Advisories {
  let answer: AuditAnswer;
  try {
    answer = JSON.parse(output) as AuditAnswer;
  } catch {
    return { kind: 'unavailable', reason: 'npm audit returned no result' };
  }
  const { vulnerabilities, message, error } = answer;
  if (vulnerabilities === undefined) {
    const reasons = [message, error?.summary, 'npm audit returned no result'];
    const isGiven = (each: unknown): each is string => typeof each === 'string' && each !== '';
    return { kind: 'unavailable', reason: reasons.filter(isGiven)[0] ?? '' };
  }
  const vulnerable = Object.entries(vulnerabilities).map(
    ([name, { severity, range }]) => `${name} ${range} has a known vulnerability (${severity})`,
  );
  return { kind: 'checked', vulnerable };
}
