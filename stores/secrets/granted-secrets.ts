import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DEFAULT_NAMESPACE } from '../../domain/namespaces/namespace.ts';
import {
  SecretError,
  SECRET_NAME_PATTERN,
  type Secret,
  type SecretSource,
} from '../../domain/secrets/secret-source.ts';

/** Which namespaces may use the secrets of the environment and of files, and to which hosts these may be sent. */
export interface SecretGrants {
  /** Namespaces by name; `*` is all of them. */
  readonly namespaces: ReadonlyMap<string, readonly string[]>;
  readonly hosts: ReadonlyMap<string, readonly string[]>;
  /** Whether `default` may use secrets that `namespaces` does not list. Not in production. */
  readonly grantsDefault: boolean;
}

/** Reads a secret's value; undefined if there is none. @throws Error if it exists but cannot be read */
export type ReadSecret = (name: string) => string | undefined;

const namePattern = new RegExp(SECRET_NAME_PATTERN);

/** Secrets of the machine: environment variables, or files of a folder. Each must be granted to namespaces. */
export class GrantedSecrets implements SecretSource {
  readonly #source: Secret['source'];
  readonly #read: ReadSecret;
  readonly #grants: SecretGrants;

  constructor(source: 'environment' | 'files', read: ReadSecret, grants: SecretGrants) {
    this.#source = source;
    this.#read = read;
    this.#grants = grants;
  }

  async find(namespace: string, name: string): Promise<Secret | undefined> {
    let value: string | undefined;
    try {
      value = this.#read(name);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      throw new SecretError(`the secret ${name} cannot be read: ${why}`, false, error);
    }
    if (value === undefined) return undefined;
    this.#requireGrant(namespace, name);
    const allowHosts = this.#grants.hosts.get(name) ?? [];
    const hostsRemedy = `name the host in SVC_SECRET_HOSTS, such as ${name}=api.example.com`;
    const shared = { name, value, version: null, source: this.#source };
    return { ...shared, allowHosts, allowTasks: null, expiresAt: null, hostsRemedy };
  }

  #requireGrant(namespace: string, name: string): void {
    const { namespaces, grantsDefault } = this.#grants;
    const granted = namespaces.get(name) ?? (grantsDefault ? [DEFAULT_NAMESPACE] : []);
    if (granted.includes(namespace) || granted.includes('*')) return;
    throw new SecretError(
      `the namespace ${namespace} may not use the secret ${name} of this machine: ` +
        `grant it with SVC_SECRET_GRANTS=${name}=${namespace}`,
    );
  }
}

/**
 * Reads `<folder>/<name>` without a final line break, at each use. Docker and Kubernetes mount secrets in this form.
 */
export function readSecretFile(folder: string): ReadSecret {
  return (name) => {
    if (!namePattern.test(name)) return undefined;
    const path = join(folder, name);
    try {
      return readFileSync(path, 'utf8').replace(/\r?\n$/, '');
    } catch (error) {
      const { code = 'unknown error' } = error as NodeJS.ErrnoException;
      if (code === 'ENOENT') return undefined;
      throw new Error(`${path} cannot be read (${code})`, { cause: error });
    }
  };
}
