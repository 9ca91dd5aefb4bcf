import { fromIso } from '../../domain/clock.ts';
import type { Loaded } from '../../domain/handle.ts';
import { sealingContext, type SecretState } from '../../domain/secrets/secret.ts';
import type { SecretCipher } from '../../domain/secrets/secret-cipher.ts';
import { SecretError, type Secret, type SecretSource } from '../../domain/secrets/secret-source.ts';
import { idOf, streams } from '../../domain/streams.ts';

/** The folded streams of secrets, kept up to date by the log. */
export interface SecretStreams {
  get(id: string): Promise<Loaded<SecretState>> | Loaded<SecretState>;
}

/** The secrets of the event log. They are encrypted in the log and in memory. */
export class StoredSecrets implements SecretSource {
  readonly #secrets: SecretStreams;
  readonly #cipher: Pick<SecretCipher, 'open'>;

  constructor(secrets: SecretStreams, cipher: Pick<SecretCipher, 'open'>) {
    this.#secrets = secrets;
    this.#cipher = cipher;
  }

  async find(namespace: string, name: string): Promise<Secret | undefined> {
    const { state } = await this.#secrets.get(idOf(streams.secret(namespace, name)));
    if (state.status !== 'set') return undefined;
    const { version, sealed, allow_hosts: allowHosts, allow_tasks: allowTasks } = state;
    const expiresAt = state.expires_at === null ? null : fromIso(state.expires_at);
    const hostsRemedy = `name the host in allow_hosts of PUT /secrets/${name}`;
    try {
      const value = this.#cipher.open(sealed, sealingContext(state));
      const limits = { allowHosts, allowTasks, expiresAt, hostsRemedy };
      return { name, value, version, source: 'store', ...limits };
    } catch (error) {
      if (!(error instanceof SecretError)) throw error;
      throw new SecretError(
        `the secret ${name} cannot be opened: ${error.message}`,
        error.retryable,
        error,
      );
    }
  }
}
