import { appendFileSync } from 'node:fs';

/**
 * Names the file in which the processes of a test run note skipped tests. `left-out-report.ts` sets
 * it.
 */
export const LEFT_OUT_FILE = 'SVC_TEST_LEFT_OUT_FILE';

/** Notes something that this run does not test, for its closing lines. @param what with the remedy, on one line */
export function noteLeftOut(what: string): void {
  const file = process.env[LEFT_OUT_FILE];
  if (file !== undefined) appendFileSync(file, `${what}\n`);
}

/**
 * Skips a test, or every test of a `describe` when called in its `before`, because this machine
 * lacks something. In CI (`CI=true`) the test fails instead: a test that did not run must not look
 * like one that passed.
 * @param what the missing part and the remedy, on one line
 */
export function leaveOut(context: Mocha.Context, what: string): never {
  if (process.env['CI'] === 'true') throw new Error(`${what}; with CI=true nothing is skipped`);
  noteLeftOut(what);
  return context.skip();
}

/**
 * The address of a real server for the tests, from the environment. Without it the tests run against the stand-in only,
 * in CI too, and the closing lines of the run say so.
 */
export function realServerAt(setting: keyof typeof servers): string | undefined {
  const url = process.env[setting];
  if (url === undefined || url === '') {
    noteLeftOut(`${servers[setting]}: set ${setting} to test against one`);
    return undefined;
  }
  return url;
}

const servers = {
  SVC_TEST_ESDB_URL: 'a real EventStoreDB',
  SVC_TEST_MONGODB_URL: 'a real MongoDB',
  SVC_TEST_S3_URL: 'a real server of S3',
  SVC_TEST_VAULT_ADDR: 'a real Vault',
} as const;

/** Whether the long versions of tests run (`npm run test:long`). The closing lines of a run without them say so. */
export function longVersions(): boolean {
  const long = process.env['SVC_TEST_LONG'] === '1';
  if (!long) noteLeftOut('the long versions of some tests: npm run test:long runs them');
  return long;
}
