import { textOf, type Environment } from '../../configuration/setting-readers.ts';
import { announced, type Announcement } from '../../starting/announcement.ts';
import { dataDirectoryOf } from './sign-in.ts';

/** Where a service listens by default. */
export const DEFAULT_URL = 'http://127.0.0.1:8080';

/** How long a service that may be there has for its answer. Milliseconds. */
const LIMIT = 1000;

/**
 * Where the service is, the first of: `--url`; `SVC_URL`; the newest service that runs on the data directory, as its
 * file there says; the default. A file that a killed process has left is not believed: another program may listen
 * there by now, and would be sent the secret.
 *
 * @param given.dataDir in place of `SVC_DATA_DIR`
 */
export async function serviceAddress(
  env: Environment,
  given: { readonly url?: string | undefined; readonly dataDir?: string | undefined },
  signal: AbortSignal,
): Promise<string> {
  const named = given.url ?? textOf(env, 'SVC_URL');
  if (named !== undefined) return named;
  for (const service of announced(given.dataDir ?? dataDirectoryOf(env))) {
    if (await isThere(service, signal)) return service.address;
  }
  return DEFAULT_URL;
}

/** Whether the process that wrote the file answers at its address. */
async function isThere(service: Announcement, signal: AbortSignal): Promise<boolean> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(LIMIT)]);
  try {
    const answer = await fetch(`${service.address}/health/live`, { signal: limit });
    const told = (await answer.json()) as { readonly instance?: unknown };
    return told.instance === service.instance;
  } catch {
    // Nobody is there, or nobody who speaks as a service does: it is as if there were no file.
    return false;
  }
}
