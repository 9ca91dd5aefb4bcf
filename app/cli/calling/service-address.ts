import { settingOf, type Environment } from '../../configuration/setting-readers.ts';
import { announced, type Announcement } from '../../starting/announcement.ts';
import { certificateProblem } from './certificate-problem.ts';
import { dataDirectoryOf } from './credentials.ts';

/** Where a service listens by default. */
export const DEFAULT_URL = 'http://127.0.0.1:8080';

/** Milliseconds that an announced service has to answer. */
const PROBE_TIMEOUT = 1000;

/**
 * The service's address, the first of: `--url`; `SVC_URL`; the newest service announced in the data directory; the
 * default. A file that a killed process left is not trusted: another program may listen there by now and would receive
 * the secret.
 *
 * @param given.dataDir overrides `SVC_DATA_DIR`
 */
export async function serviceAddress(
  env: Environment,
  given: { readonly url?: string | undefined; readonly dataDir?: string | undefined },
  signal: AbortSignal,
): Promise<string> {
  const named = given.url ?? settingOf(env, 'SVC_URL');
  if (named !== undefined) return named;
  let untrusted: string | null = null;
  for (const service of announced(given.dataDir ?? dataDirectoryOf(env))) {
    const found = await probe(service, signal);
    if (found === 'running') return service.address;
    if (found === 'untrusted') untrusted ??= service.address;
  }
  // Calling it fails with the reason before anything secret is sent.
  return untrusted ?? DEFAULT_URL;
}

/** Whether the process that wrote the announcement answers at its address. */
async function probe(
  service: Announcement,
  signal: AbortSignal,
): Promise<'running' | 'untrusted' | 'gone'> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(PROBE_TIMEOUT)]);
  try {
    const response = await fetch(`${service.address}/health/live`, { signal: limit });
    const { instance } = (await response.json()) as { readonly instance?: unknown };
    return instance === service.instance ? 'running' : 'gone';
  } catch (error) {
    return certificateProblem(error) === null ? 'gone' : 'untrusted';
  }
}
