import { createHash, createHmac } from 'node:crypto';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Credentials, KeptTokens } from '../../../api/client/client.ts';
import type { Clock } from '../../../domain/clock.ts';
import { makeFolder } from '../../../stores/folder.ts';
import { settingOf, type Environment } from '../../configuration/setting-readers.ts';

/** Milliseconds of validity that a cached token must have left, for the command itself and for clock differences. */
const MIN_VALIDITY = 60_000;

interface CachedToken {
  readonly token: string;
  /** HMAC of the token with the agent's secret: a caller with another secret gets no cached token. */
  readonly proof: string;
}

/**
 * Caches the token of each service and agent in a file readable by its owner alone. Without it every command would start
 * a session and fill the audit trail. Refresh tokens are not cached.
 *
 * @param env `XDG_STATE_HOME`, or `HOME`; without both nothing is cached
 * @param url of the service
 */
export function tokenCache(
  env: Environment,
  url: string,
  clock: Clock,
): { readonly kept?: KeptTokens } {
  const home = settingOf(env, 'HOME');
  const state = settingOf(env, 'XDG_STATE_HOME') ?? (home && join(home, '.local', 'state'));
  if (state === undefined) return {};
  const folder = join(state, 'svc');
  const fileOf = ({ agentId }: Credentials): string => {
    const name = createHash('sha256').update(`${url}\n${agentId.toLowerCase()}`).digest('hex');
    return join(folder, `token-${name.slice(0, 32)}.json`);
  };
  return {
    kept: {
      find(credentials) {
        const cached = read(fileOf(credentials));
        if (cached === null || cached.proof !== proofOf(cached.token, credentials)) return null;
        return expiryOf(cached.token) - clock.now() > MIN_VALIDITY ? cached.token : null;
      },
      keep(credentials, token) {
        const cached: CachedToken = { token, proof: proofOf(token, credentials) };
        write(folder, fileOf(credentials), JSON.stringify(cached));
      },
    },
  };
}

const proofOf = (token: string, { agentSecret = '' }: Credentials): string =>
  createHmac('sha256', agentSecret).update(token).digest('base64url');

/** Null for a file that is missing or malformed. */
function read(file: string): CachedToken | null {
  try {
    const { token, proof } = JSON.parse(readFileSync(file, 'utf8')) as Partial<CachedToken>;
    return typeof token === 'string' && typeof proof === 'string' ? { token, proof } : null;
  } catch {
    return null;
  }
}

/** Writes atomically. An unwritable home disables the cache and does not fail the command. */
function write(folder: string, file: string, content: string): void {
  const temporary = `${file}.${process.pid}`;
  try {
    makeFolder(folder);
    writeFileSync(temporary, content, { mode: 0o600 });
    renameSync(temporary, file);
  } catch {
    return;
  }
}

/** When a token expires, in milliseconds since 1970; 0 if the token does not say. */
function expiryOf(token: string): number {
  try {
    const [, claims = ''] = token.split('.');
    const { exp } = JSON.parse(Buffer.from(claims, 'base64url').toString()) as { exp?: unknown };
    return typeof exp === 'number' ? exp * 1000 : 0;
  } catch {
    return 0;
  }
}
