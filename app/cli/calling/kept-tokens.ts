import { createHash, createHmac } from 'node:crypto';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Credentials, KeptTokens } from '../../../api/client/client.ts';
import type { Clock } from '../../../domain/clock.ts';
import { makeFolder } from '../../../stores/folder.ts';
import { textOf, type Environment } from '../../configuration/setting-readers.ts';

/** Milliseconds that a kept token must still have: a command takes a moment, and clocks differ. */
const LEAST_LEFT = 60_000;

/** What a file has. */
interface Kept {
  readonly token: string;
  /** Of the token, by the secret that it was got for: who has another secret signs in with that, and is told so. */
  readonly proof: string;
}

/**
 * Keeps the token of each service and agent in a file of its own, for its owner alone: else every command would begin a
 * session, and the audit would be full of them. A token lives an hour; the one that renews it is not kept.
 *
 * @param env `XDG_STATE_HOME`, or `HOME`: without both nothing is kept
 * @param url of the service
 */
export function keptTokens(
  env: Environment,
  url: string,
  clock: Clock,
): { readonly kept?: KeptTokens } {
  const home = textOf(env, 'HOME');
  const state = textOf(env, 'XDG_STATE_HOME') ?? (home && join(home, '.local', 'state'));
  if (state === undefined) return {};
  const folder = join(state, 'svc');
  const fileOf = ({ agentId }: Credentials): string => {
    const name = createHash('sha256').update(`${url}\n${agentId.toLowerCase()}`).digest('hex');
    return join(folder, `token-${name.slice(0, 32)}.json`);
  };
  return {
    kept: {
      find(credentials) {
        const kept = read(fileOf(credentials));
        if (kept === null || kept.proof !== proofOf(kept.token, credentials)) return null;
        return expiryOf(kept.token) - clock.now() > LEAST_LEFT ? kept.token : null;
      },
      keep(credentials, token) {
        const kept: Kept = { token, proof: proofOf(token, credentials) };
        write(folder, fileOf(credentials), JSON.stringify(kept));
      },
    },
  };
}

const proofOf = (token: string, { agentSecret = '' }: Credentials): string =>
  createHmac('sha256', agentSecret).update(token).digest('base64url');

/** null for a file that is not there, or is of no use: it is as if nothing had been kept. */
function read(file: string): Kept | null {
  try {
    const { token, proof } = JSON.parse(readFileSync(file, 'utf8')) as Partial<Kept>;
    return typeof token === 'string' && typeof proof === 'string' ? { token, proof } : null;
  } catch {
    return null;
  }
}

/** Where a home can't be written to, nothing is kept: that is no reason to refuse a command. */
function write(folder: string, file: string, text: string): void {
  const fresh = `${file}.${process.pid}`;
  try {
    makeFolder(folder);
    writeFileSync(fresh, text, { mode: 0o600 });
    // Whole or not at all, also for a command that reads it at the same time.
    renameSync(fresh, file);
  } catch {
    return;
  }
}

/** When a token expires, in milliseconds since 1970; 0 where it does not say. */
function expiryOf(token: string): number {
  try {
    const [, claims = ''] = token.split('.');
    const { exp } = JSON.parse(Buffer.from(claims, 'base64url').toString()) as { exp?: unknown };
    return typeof exp === 'number' ? exp * 1000 : 0;
  } catch {
    return 0;
  }
}
