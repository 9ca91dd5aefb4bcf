import { SecretUses } from '../../api/access/secret-uses.ts';
import type { Clock } from '../../domain/clock.ts';
import type { EventStore } from '../../domain/event-store.ts';
import { SecretAccess } from '../../domain/secrets/secret-access.ts';
import { LayeredSecrets, type SecretSource } from '../../domain/secrets/secret-source.ts';
import { secretFold, type SecretEvent, type SecretState } from '../../domain/secrets/secret.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import { LiveStreams } from '../../projections/reading/live-streams.ts';
import { GrantedSecrets, readSecretFile } from '../../stores/secrets/granted-secrets.ts';
import { KeyCipher } from '../../stores/secrets/key-cipher.ts';
import { StoredSecrets } from '../../stores/secrets/stored-secrets.ts';
import { VaultSecrets } from '../../stores/secrets/vault-secrets.ts';
import type { Configuration } from '../configuration/configuration.ts';
import { pipelineSecret, withSecretFiles } from '../configuration/secret-files.ts';
import { secretKeys } from '../configuration/secret-settings.ts';
import type { Environment } from '../configuration/setting-readers.ts';
import type { Supervisor } from '../roles/supervisor.ts';
import { SecretKeyring } from './secret-keyring.ts';

/** The secrets of a process, and their parts. */
export interface ProcessSecrets {
  readonly access: SecretAccess;
  readonly cipher: KeyCipher;
  readonly keyring: SecretKeyring;
  /** The folded streams of secrets. */
  readonly stored: LiveStreams<SecretState, SecretEvent>;
  /** Writes the uses that are not in the log yet. */
  close(): Promise<void>;
}

/**
 * Creates the secrets of a process. They are looked up in the log, Vault, files and the environment, in this order.
 * @param options.env read at each use, so changed files need no restart
 */
export function createSecrets(options: {
  readonly configuration: Pick<Configuration, 'secrets' | 'dataDirectory' | 'production'>;
  readonly env: Environment;
  readonly store: EventStore;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly supervisor: Supervisor;
  /** Name of this process. */
  readonly member: string;
}): ProcessSecrets {
  const { configuration, env, store, clock, telemetry, supervisor, member } = options;
  const { dataDirectory: directory, production } = configuration;
  const given = (): readonly Buffer[] | undefined => secretKeys(withSecretFiles(env), production);
  const keyring = new SecretKeyring({ directory, given, log: telemetry.log });
  const cipher = new KeyCipher(keyring);
  const stored = new LiveStreams<SecretState, SecretEvent>(store, 'secret-', secretFold);
  supervisor.supervise('following secrets', (started) => stored.follow(supervisor.signal, started));
  const uses = new SecretUses({ store, clock, telemetry }, member);
  const sources = [
    new StoredSecrets(stored, cipher),
    ...machineSources(configuration.secrets, env, clock),
  ];
  const access = new SecretAccess(new LayeredSecrets(sources), (use) => uses.used(use), clock);
  return { access, cipher, keyring, stored, close: () => uses.close() };
}

/** The secrets that are not in the log. */
export function machineSources(
  { vault, directory, grants }: Configuration['secrets'],
  env: Environment,
  clock: Pick<Clock, 'now'>,
): readonly SecretSource[] {
  return [
    ...(vault === undefined ? [] : [new VaultSecrets(vault, clock)]),
    ...(directory === undefined
      ? []
      : [new GrantedSecrets('files', readSecretFile(directory), grants)]),
    new GrantedSecrets('environment', (name) => pipelineSecret(env, name), grants),
  ];
}
