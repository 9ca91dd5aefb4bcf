import { readFileSync } from 'node:fs';
import { hostEntryIssue } from '../../domain/secrets/allowed-hosts.ts';
import { SecretError, type Secret, type SecretSource } from '../../domain/secrets/secret-source.ts';
import type { Clock, Instant } from '../../domain/clock.ts';
import { isJsonObject } from '../../domain/json.ts';

/** How long a secret is kept in memory, and how long Vault may take to respond. Milliseconds. */
const CACHE_LIFE = 30_000;
const TIMEOUT = 5_000;

/** The most secrets in memory. */
const MAX_CACHED = 1_000;

export interface VaultSettings {
  /** The address without a final slash. */
  readonly address: string;
  readonly token: string | undefined;
  /** The token is read at each request, because agents of Vault renew it. */
  readonly tokenFile: string | undefined;
  /** The mount of the KV engine, version 2. */
  readonly mount: string;
  /** A path with `{namespace}` and `{name}`. */
  readonly path: string;
}

interface Cached {
  readonly secret: Secret | undefined;
  readonly until: Instant;
}

/**
 * The secrets of HashiCorp Vault's KV engine, version 2. A secret has the field `value`, and may have `allow_hosts` and
 * `allow_tasks`: lists, or strings separated by commas.
 */
export class VaultSecrets implements SecretSource {
  readonly #settings: VaultSettings;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #cache = new Map<string, Cached>();

  constructor(settings: VaultSettings, clock: Pick<Clock, 'now'>) {
    this.#settings = settings;
    this.#clock = clock;
  }

  async find(namespace: string, name: string): Promise<Secret | undefined> {
    const key = `${namespace}/${name}`;
    const known = this.#cache.get(key);
    if (known !== undefined && known.until > this.#clock.now()) return known.secret;
    const secret = await this.#read(namespace, name);
    this.#cache.delete(key);
    this.#cache.set(key, { secret, until: this.#clock.now() + CACHE_LIFE });
    const [oldest] = this.#cache.keys();
    if (this.#cache.size > MAX_CACHED && oldest !== undefined) this.#cache.delete(oldest);
    return secret;
  }

  /** Checks that Vault responds and knows the token. @throws SecretError */
  async check(): Promise<void> {
    const response = await this.#get('auth/token/lookup-self', 'of its token');
    await response.body?.cancel();
    if (response.ok) return;
    throw new SecretError(`Vault answered ${response.status}: renew SVC_VAULT_TOKEN`, true);
  }

  async #read(namespace: string, name: string): Promise<Secret | undefined> {
    const { mount, path } = this.#settings;
    const named = path.replaceAll('{namespace}', namespace).replaceAll('{name}', name);
    const where = `${mount}/data/${named}`;
    const response = await this.#get(where, `of the secret ${name}`);
    const { status } = response;
    if (status === 404) {
      await response.body?.cancel();
      return undefined;
    }
    if (status !== 200) {
      await response.body?.cancel();
      const remedy = status === 403 ? `: its token must be allowed to read ${where}` : '';
      const message = `Vault answered ${status} to the request for the secret ${name}${remedy}`;
      throw new SecretError(message, status >= 500 || status === 429 || status === 403);
    }
    return secretOf(name, where, await jsonOf(response, name));
  }

  async #get(path: string, what: string): Promise<Response> {
    const { address } = this.#settings;
    const url = `${address}/v1/${path.split('/').map(encodeURIComponent).join('/')}`;
    try {
      return await fetch(url, {
        headers: { 'x-vault-token': this.#token(), 'x-vault-request': 'true' },
        // The token must not be sent to another server.
        redirect: 'error',
        signal: AbortSignal.timeout(TIMEOUT),
      });
    } catch (error) {
      if (error instanceof SecretError) throw error;
      throw new SecretError(`Vault did not answer the request ${what}`, true, error);
    }
  }

  #token(): string {
    const { token, tokenFile } = this.#settings;
    if (token !== undefined) return token;
    try {
      return readFileSync(tokenFile ?? '', 'utf8').trim();
    } catch (error) {
      const { code = 'unknown error' } = error as NodeJS.ErrnoException;
      throw new SecretError(
        `the file of SVC_VAULT_TOKEN_FILE cannot be read (${code})`,
        true,
        error,
      );
    }
  }
}

async function jsonOf(response: Response, name: string): Promise<unknown> {
  try {
    return await response.json();
  } catch (error) {
    // The parser's message would quote the secret.
    const broken = error instanceof SyntaxError ? 'no JSON' : 'an incomplete response';
    throw new SecretError(`Vault returned ${broken} for the secret ${name}`, true);
  }
}

/** @throws SecretError for a secret in an invalid form */
function secretOf(name: string, where: string, body: unknown): Secret | undefined {
  const outer = isJsonObject(body) && isJsonObject(body['data']) ? body['data'] : {};
  const { data, metadata } = outer;
  // A deleted version has none.
  if (!isJsonObject(data)) return undefined;
  const { value } = data;
  if (typeof value !== 'string' || value === '') {
    throw new SecretError(`${where} in Vault has no field "value" with a string`);
  }
  const version = isJsonObject(metadata) ? metadata['version'] : undefined;
  const allowHosts = listOf(data['allow_hosts'], `allow_hosts of ${where}`) ?? [];
  const faulty = allowHosts.find((entry) => hostEntryIssue(entry) !== null);
  if (faulty !== undefined) {
    throw new SecretError(`allow_hosts of ${where} in Vault: ${hostEntryIssue(faulty) ?? ''}`);
  }
  return {
    name,
    value,
    version: typeof version === 'number' ? version : null,
    source: 'vault',
    allowHosts,
    allowTasks: listOf(data['allow_tasks'], `allow_tasks of ${where}`),
    // Vault deletes expired versions itself (`delete_version_after`).
    expiresAt: null,
    hostsRemedy: `name the host in the field allow_hosts of ${where} in Vault`,
  };
}

/** @throws SecretError for anything but a list or a string, so that no limit is lost */
function listOf(value: unknown, what: string): readonly string[] | null {
  if (value === undefined || value === null) return null;
  const items: readonly unknown[] = typeof value === 'string' ? value.split(',') : [value].flat();
  if (!items.every((item) => typeof item === 'string')) {
    throw new SecretError(`${what} in Vault must be a list of strings, or a string with commas`);
  }
  return items.map((item) => item.trim()).filter((item) => item !== '');
}
