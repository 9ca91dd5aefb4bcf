import { createHmac, createSecretKey, randomBytes, type KeyObject } from 'node:crypto';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TokenKeys } from '../../api/access/tokens.ts';
import type { Log } from '../../observability/telemetry.ts';
import { makeFolder } from '../../stores/folder.ts';
import type { Configuration } from '../configuration/configuration.ts';
import { moveIfAbsent } from '../move-if-absent.ts';

/** The generated signing key in the data directory. */
export const KEY_FILE = 'jwt-secret.key';

/** The signing keys in use; they can be replaced while the service runs. */
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

  /** Replaces the keys. Returns whether a key changed. */
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
 * The keys of the settings. Without one, a key is generated and saved in the data directory, so that tokens survive a
 * restart. All processes over one directory use the same.
 */
export function jwtKeys(
  configuration: Pick<Configuration, 'jwtSecretKey' | 'jwtPreviousSecretKey' | 'dataDirectory'>,
  log: Log,
): TokenKeys {
  const { jwtSecretKey, jwtPreviousSecretKey, dataDirectory } = configuration;
  return {
    jwtKey: keyOf(jwtSecretKey ?? savedKey(dataDirectory, log)),
    previousJwtKey: jwtPreviousSecretKey === undefined ? null : keyOf(jwtPreviousSecretKey),
  };
}

/**
 * Secrets of webhooks by agent and version: `whsec_` and 32 bytes in Base64, as in Standard Webhooks. They are not
 * stored, but derived from `SVC_WEBHOOK_KEY` or, without it, from the signing key.
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

const keyOf = (secret: string): KeyObject => createSecretKey(secret, 'utf8');

function savedKey(directory: string, log: Log): string {
  const path = join(directory, KEY_FILE);
  const saved = readKey(path);
  if (saved !== null) return saved;
  makeFolder(directory);
  // Random, because processes in containers over one volume can have the same process id.
  const draft = `${path}.${randomBytes(6).toString('hex')}`;
  writeFileSync(draft, randomBytes(48).toString('base64url'), { mode: 0o600, flush: true });
  try {
    // Atomic, so that one of several concurrent starts wins.
    moveIfAbsent(draft, path);
    log.info('generated a signing key, JWT_SECRET_KEY is not set', { file: path });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    rmSync(draft, { force: true });
  }
  const winner = readKey(path);
  if (winner === null)
    throw new Error(`the key file ${path} disappeared right after it was created`);
  return winner;
}

function readKey(path: string): string | null {
  try {
    const key = readFileSync(path, 'utf8').trim();
    if (Buffer.byteLength(key) >= 32) return key;
    throw new Error(`${path} has no key of 32 bytes or more; remove it to generate a new one`);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
