import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fromIso, type Instant } from '../../domain/clock.ts';
import { namespaceOf } from '../../domain/namespaces/namespace.ts';
import { SecretError } from '../../domain/secrets/secret-source.ts';
import type { ReadModel } from '../../projections/read-model.ts';
import {
  secretsByName,
  secretsProjection,
  type SecretDocument,
} from '../../projections/views/secrets.ts';
import { statIfPresent } from '../../stores/folder.ts';
import { keyIdOf } from '../../stores/secrets/key-cipher.ts';
import { VaultSecrets } from '../../stores/secrets/vault-secrets.ts';
import type { Configuration } from '../configuration/configuration.ts';
import { environmentSecrets, parseKey } from '../configuration/secret-settings.ts';
import type { Environment } from '../configuration/setting-readers.ts';
import { isSecretKeyFile } from '../starting/secret-keyring.ts';
import { fault, ok, warn, type Finding } from './finding.ts';

const CHECK = 'secrets';

/** The most secrets that the check of keys reads. */
const MAX_SECRETS = 1_000;

/** Where the keys for secrets are. */
interface KeySettings {
  readonly secrets: Pick<Configuration['secrets'], 'keys'>;
  readonly dataDirectory: string;
}

/** The ids of the keys for secrets that this machine has. */
function keysOf({ secrets, dataDirectory }: KeySettings): ReadonlySet<string> {
  if (secrets.keys !== undefined) return new Set(secrets.keys.map(keyIdOf));
  const keys = generatedKeys(dataDirectory).map((name) =>
    parseKey(readFileSync(join(dataDirectory, name), 'utf8').trim()),
  );
  return new Set(keys.flatMap((key) => (key === null ? [] : [keyIdOf(key)])));
}

function generatedKeys(directory: string): readonly string[] {
  return statIfPresent(directory) === undefined
    ? []
    : readdirSync(directory).filter(isSecretKeyFile);
}

/** Checks the keys, the grants of the environment's secrets, and whether Vault answers. */
export async function checkSecrets(
  configuration: Configuration,
  env: Environment,
): Promise<readonly Finding[]> {
  const { secrets, dataDirectory } = configuration;
  const findings: Finding[] = [];
  if (secrets.keys === undefined) {
    for (const name of generatedKeys(dataDirectory)) {
      const path = join(dataDirectory, name);
      const mode = statIfPresent(path)?.mode ?? 0;
      if ((mode & 0o077) !== 0) {
        findings.push(fault(CHECK, `other users can read ${path}`, `chmod 600 ${path}`));
      } else if (parseKey(readFileSync(path, 'utf8').trim()) === null) {
        const advice = 'restore it from a backup: secrets that it encrypted cannot be decrypted';
        findings.push(fault(CHECK, `${path} has no key`, advice));
      }
    }
  }
  if (secrets.vault !== undefined) findings.push(await checkVault(secrets.vault));
  if (findings.length > 0) return findings;
  const given = secrets.keys === undefined ? 'generated keys' : 'SVC_SECRETS_KEY is set';
  const count = environmentSecrets(env).length;
  return [ok(CHECK, count === 0 ? given : `${given}; ${count} in the environment`)];
}

async function checkVault(settings: NonNullable<Configuration['secrets']['vault']>) {
  try {
    await new VaultSecrets(settings, Date).check();
    return ok('vault', settings.address);
  } catch (error) {
    if (!(error instanceof SecretError)) throw error;
    const advice = 'steps that use its secrets fail until it answers';
    return fault('vault', `${settings.address}: ${error.message}`, advice);
  }
}

/** Checks that this machine has the keys of all secrets in the log, and that none has expired. */
export async function checkSealedSecrets(
  { readModel }: { readonly readModel: ReadModel },
  configuration: KeySettings,
  now: Instant,
): Promise<readonly Finding[]> {
  if ((await readModel.liveGeneration(secretsProjection)) === null) return [];
  const query = { filters: [], sort: secretsByName, limit: MAX_SECRETS, counted: null };
  const { documents } = await readModel.list(secretsProjection, query);
  const secrets = documents.map(({ text }) => JSON.parse(text) as SecretDocument);
  return [...findLost(secrets, configuration), ...findExpired(secrets, now)];
}

function findExpired(secrets: readonly SecretDocument[], now: Instant): readonly Finding[] {
  const expired = secrets.filter(({ expires_at: at = null }) => at !== null && fromIso(at) <= now);
  const [first] = expired;
  if (first === undefined) return [];
  const others = expired.length === 1 ? '' : ` and ${expired.length - 1} more`;
  const what = `${namespaceOf(first)}/${first.name} expired at ${first.expires_at ?? ''}`;
  const advice = 'set it again, or delete it: steps that use it fail';
  return [warn('expired secrets', `${what}${others}`, advice)];
}

function findLost(
  secrets: readonly SecretDocument[],
  configuration: KeySettings,
): readonly Finding[] {
  const keys = keysOf(configuration);
  const lost = secrets.filter(({ key_id }) => !keys.has(key_id));
  const [first] = lost;
  if (first === undefined) return [];
  const what = `this machine has no key ${first.key_id}, which encrypted ${namespaceOf(first)}/${first.name}`;
  const others = lost.length === 1 ? '' : ` and ${lost.length - 1} more`;
  const advice = 'add the key to SVC_SECRETS_KEY, restore its file, or set the secrets again';
  return [fault('keys of secrets', `${what}${others}`, advice)];
}
