import { artifactVariables } from './artifact-settings.ts';
import { peopleVariables } from './people-settings.ts';
import { sharingVariables } from './sharing-settings.ts';
import { secretFileSettings } from './secret-files.ts';
import { secretVariables } from './secret-settings.ts';
import { isExtensionSetting } from './extension-settings.ts';
import { settingOf, type Environment } from './setting-readers.ts';

/** The variables of the service, besides `NODE_ENV` and the signing keys. */
export const settings = [
  'SVC_PORT',
  'SVC_HOST',
  'SVC_TLS_CERT_FILE',
  'SVC_TLS_KEY_FILE',
  'SVC_DATA_DIR',
  'SVC_ROLES',
  'SVC_EVENT_STORE_URL',
  'SVC_READ_MODEL_URL',
  'SVC_WORKER_CONCURRENCY',
  ...sharingVariables,
  'SVC_QUOTAS',
  'SVC_MAX_CAUSATION_DEPTH',
  'SVC_LOG_LEVEL',
  'SVC_TRUST_PROXY',
  'SVC_MAX_BODY_BYTES',
  'SVC_CORS_ORIGINS',
  'SVC_PUBLIC_URL',
  'SVC_RATE_LIMIT',
  'SVC_RATE_LIMIT_WINDOW_SECONDS',
  'SVC_LEASE_SECONDS',
  'SVC_JOB_LEASE_SECONDS',
  'SVC_JOB_HEARTBEAT_SECONDS',
  'SVC_ACCESS_TOKEN_SECONDS',
  'SVC_REFRESH_TOKEN_SECONDS',
  'SVC_PAGE_SESSION_SECONDS',
  ...peopleVariables,
  'SVC_ADMIN_ID',
  'SVC_ADMIN_SECRET',
  'SVC_ALLOW_SECRETLESS',
  'SVC_AUDIT_READS',
  'SVC_HTTP_ALLOW_PRIVATE',
  'SVC_WEBHOOK_KEY',
  ...secretVariables,
  ...artifactVariables,
  'SVC_EXT_PATHS',
  'SVC_EXT_PLUGINS',
  'SVC_EXT_GRANTS',
  'SVC_EXTENSION_SECONDS',
  'SVC_REQUIRE_SCOPES',
  'SVC_WEBUI_REQUIRE_AUTH',
  'SVC_RETAIN_RUNS_DAYS',
  'SVC_RETAIN_DELIVERIES_DAYS',
  'SVC_RETAIN_SESSIONS_DAYS',
  'SVC_RETAIN_REFUSALS_DAYS',
  'SVC_RETAIN_REQUESTS_DAYS',
] as const;

/** The variables of the command line. */
export const clientSettings = ['SVC_URL', 'SVC_TOKEN', 'SVC_AGENT_ID', 'SVC_AGENT_SECRET'] as const;

/** Prefixes of secrets of tasks and of variables for tests. */
const settingFamilies = ['SVC_SECRET_', 'SVC_TEST_'] as const;

/**
 * Warnings about unknown `SVC_` variables, with the similar known one. Values are never shown.
 */
export function warningsAbout(env: Environment): readonly string[] {
  const known: readonly string[] = [...settings, ...clientSettings, ...secretFileSettings];
  return Object.keys(env)
    .filter((name) => name.startsWith('SVC_') && settingOf(env, name) !== undefined)
    .filter((name) => !known.includes(name) && !isExtensionSetting(name))
    .filter((name) => !settingFamilies.some((family) => name.startsWith(family)))
    .sort()
    .map((name) => {
      const meant = nearest(name, known);
      return `${name} is not a setting${meant === undefined ? '' : `; is ${meant} meant?`}`;
    });
}

/** The nearest name, at most three edits away. */
function nearest(name: string, candidates: readonly string[]): string | undefined {
  const [best] = candidates
    .map((candidate) => ({ candidate, distance: editDistance(name, candidate) }))
    .filter(({ distance }) => distance <= 3)
    .sort((a, b) => a.distance - b.distance);
  return best?.candidate;
}

/** Levenshtein's distance, row by row. */
function editDistance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (let i = 1; i <= one.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= other.length; j += 1) {
      const change = (row[j - 1] ?? 0) + (one[i - 1] === other[j - 1] ? 0 : 1);
      next.push(Math.min(change, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[other.length] ?? 0;
}
