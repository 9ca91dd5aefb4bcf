import { createHmac, createSecretKey, randomBytes, type KeyObject } from 'node:crypto';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TokenKeys } from '../../api/access/tokens.ts';
import type { Log } from '../../observability/telemetry.ts';
import { makeFolder } from '../../stores/folder.ts';
import type { Configuration } from '../configuration/configuration.ts';
import { putWhereNothingIs } from '../free-name.ts';

/** Where the key of tokens is kept in the data directory. */
export const KEY_FILE = 'jwt-secret.key';

/** The keys of tokens in use. They can be replaced while the service runs. */
export class TokenKeyring implements TokenKeys {
  #keys: TokenKeys;

  constructor(keys: TokenKeys) {
    this.#keys = keys;
  }

  get jwtKey(): KeyObject {
    return this.#keys.jwtKey;
  }

  get previousJwtKey(): KeyObject | null {
    return this.#keys.previousJwtKey;
  }

  /** Uses other keys from now on. Equal keys change nothing. @returns whether a key changed */
  replace(keys: TokenKeys): boolean {
    const same = (one: KeyObject | null, other: KeyObject | null): boolean =>
      one === null || other === null ? one === other : one.equals(other);
    if (same(keys.jwtKey, this.jwtKey) && same(keys.previousJwtKey, this.previousJwtKey)) {
      return false;
    }
    this.#keys = keys;
    return true;
  }
}

/**
 * The keys of the settings. Where none is set (and none must be), one is made and kept in the data directory, so that
 * tokens outlive a restart; all processes over one directory take the same.
 */
export function jwtKeys(
  configuration: Pick<Configuration, 'jwtSecretKey' | 'jwtPreviousSecretKey' | 'dataDirectory'>,
  log: Log,
): TokenKeys {
  const { jwtSecretKey, jwtPreviousSecretKey, dataDirectory } = configuration;
  return {
    jwtKey: keyOf(jwtSecretKey ?? keptKey(dataDirectory, log)),
    previousJwtKey: jwtPreviousSecretKey === undefined ? null : keyOf(jwtPreviousSecretKey),
  };
}

/**
 * Secrets of webhooks, by agent and version: `whsec_` and 32 bytes in Base64, as Standard Webhooks says. They are not
 * kept anywhere: each is made again of the server's key, `SVC_WEBHOOK_KEY` or, where that is not set, one that comes from
 * the key of the tokens.
 */
export function webhookSecrets(
  { webhookKey }: Pick<Configuration, 'webhookKey'>,
  keys: Pick<TokenKeys, 'jwtKey'>,
): (agentId: string, version: number) => string {
  return (agentId, version) => {
    const key =
      webhookKey ??
      createHmac('sha256', keys.jwtKey).update('key of webhook secrets').digest('base64');
    const hmac = createHmac('sha256', key).update(`webhook secret/${agentId}/${version}`);
    return `whsec_${hmac.digest('base64')}`;
  };
}

const keyOf = (text: string): KeyObject => createSecretKey(text, 'utf8');

function keptKey(directory: string, log: Log): string {
  const path = join(directory, KEY_FILE);
  const kept = readKept(path);
  if (kept !== null) return kept;
  makeFolder(directory);
  // Not the process's number: in containers over one volume, several may have the same.
  const own = `${path}.${randomBytes(6).toString('hex')}`;
  writeFileSync(own, randomBytes(48).toString('base64url'), { mode: 0o600, flush: true });
  try {
    // Whole or not at all, and only where there is none: of several that start at once, one wins.
    putWhereNothingIs(own, path);
    log.info('made a key for signing tokens, as JWT_SECRET_KEY is not set', { file: path });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    rmSync(own, { force: true });
  }
  const winner = readKept(path);
  if (winner === null) throw new Error(`the key file ${path} vanished as soon as it was made`);
  return winner;
}

function readKept(path: string): string | null {
  try {
    const key = readFileSync(path, 'utf8').trim();
    if (Buffer.byteLength(key) >= 32) return key;
    throw new Error(`${path} holds no key of 32 bytes or more; remove it to have a new one made`);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
