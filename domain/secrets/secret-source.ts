import type { Instant } from '../clock.ts';

/** The pattern of a secret's name. */
export const SECRET_NAME_PATTERN = '^[A-Za-z_][A-Za-z0-9_]{0,127}$';

const namePattern = new RegExp(SECRET_NAME_PATTERN);

/** The backends of secrets, in the order in which they are searched. */
export const secretSources = ['store', 'vault', 'files', 'environment'] as const;
export type SecretSourceName = (typeof secretSources)[number];

/** A decrypted secret, with the limits of its use. It is never written anywhere. */
export interface Secret {
  readonly name: string;
  readonly value: string;
  /** null if the backend has no versions. */
  readonly version: number | null;
  readonly source: SecretSourceName;
  /** The hosts to which it may be sent; see `allowed-hosts.ts`. Empty: none. */
  readonly allowHosts: readonly string[];
  /** The tasks that may use it; null: all of its namespace. */
  readonly allowTasks: readonly string[] | null;
  /** When it expires; null: never. Only secrets of the log can have an expiry. */
  readonly expiresAt: Instant | null;
  /** The remedy if no host is allowed, such as `add hosts with SVC_SECRET_HOSTS`. */
  readonly hostsRemedy: string;
}

/** A backend of secrets. */
export interface SecretSource {
  /**
   * The secret of a namespace; undefined if this backend has none of that name.
   * @throws SecretError if it has one that cannot be read or that the namespace may not use
   */
  find(namespace: string, name: string): Promise<Secret | undefined>;
}

/** Why a secret cannot be used. The message names the secret and the remedy, never the value. */
export class SecretError extends Error {
  /** Whether trying again later can help. */
  readonly retryable: boolean;

  constructor(message: string, retryable = false, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'SecretError';
    this.retryable = retryable;
  }
}

/**
 * Combines several backends. The first backend that has a secret provides it. A backend's refusal is thrown only if no
 * later backend has the secret.
 */
export class LayeredSecrets implements SecretSource {
  readonly #sources: readonly SecretSource[];

  constructor(sources: readonly SecretSource[]) {
    this.#sources = sources;
  }

  async find(namespace: string, name: string): Promise<Secret | undefined> {
    // Checked here, because backends use the name in paths.
    if (!namePattern.test(name)) return undefined;
    let refusal: SecretError | null = null;
    for (const source of this.#sources) {
      try {
        const secret = await source.find(namespace, name);
        if (secret !== undefined) return secret;
      } catch (error) {
        // If a backend is only unavailable, a later one must not replace it, because the later
        // value may differ.
        if (!(error instanceof SecretError) || error.retryable) throw error;
        refusal ??= error;
      }
    }
    if (refusal !== null) throw refusal;
    return undefined;
  }
}
