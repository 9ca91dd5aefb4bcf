import { textOf, type Environment } from '../../configuration/setting-readers.ts';
import { announced, type Announcement } from '../../starting/announcement.ts';
import { certificateFault } from './certificate-fault.ts';
import { dataDirectoryOf } from './sign-in.ts';

/** Where a service listens by default. */
export const DEFAULT_URL = 'http://127.0.0.1:8080';

type Look = 'there' | 'untrusted' | 'gone';

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
  let untrusted: string | null = null;
  for (const service of announced(given.dataDir ?? dataDirectoryOf(env))) {
    const look = await lookAt(service, signal);
    if (look === 'there') return service.address;
    if (look === 'untrusted') untrusted ??= service.address;
  }
  // Calling it fails and says why, before anything secret is sent.
  return untrusted ?? DEFAULT_URL;
}

/** Whether the process that wrote the file answers at its address, as far as can be told. */
async function lookAt(service: Announcement, signal: AbortSignal): Promise<Look> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(LIMIT)]);
  try {
    const answer = await fetch(`${service.address}/health/live`, { signal: limit });
    const told = (await answer.json()) as { readonly instance?: unknown };
    return told.instance === service.instance ? 'there' : 'gone';
  } catch (error) {
    // Nobody is there, or nobody who speaks as a service does: it is as if there were no file.
    return certificateFault(error) === null ? 'gone' : 'untrusted';
  }
}
