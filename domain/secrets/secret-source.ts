/** What a secret may be called. */
export const SECRET_NAME_PATTERN = '^[A-Za-z_][A-Za-z0-9_]{0,127}$';

const namePattern = new RegExp(SECRET_NAME_PATTERN);

/** Where secrets come from, in the order in which they are looked up. */
export const secretSources = ['store', 'vault', 'files', 'environment'] as const;
export type SecretSourceName = (typeof secretSources)[number];

/** A secret in clear, with where it may be used. Never written anywhere. */
export interface Secret {
  readonly name: string;
  readonly value: string;
  /** Null where the backend has no versions. */
  readonly version: number | null;
  readonly source: SecretSourceName;
  /** Where it may be sent; see `allowed-hosts.ts`. Empty: nowhere. */
  readonly allowHosts: readonly string[];
  /** The tasks that may use it; null: all of its namespace. */
  readonly allowTasks: readonly string[] | null;
  /** What to do where no host is allowed, such as `add hosts with SVC_SECRET_HOSTS`. */
  readonly hostsRemedy: string;
}

/** A backend of secrets. */
export interface SecretSource {
  /**
   * The secret of a namespace; undefined if this backend has none of that name.
   * @throws SecretError where it has one that cannot be read, or that the namespace may not use
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

/** Several backends: the first that has a secret gives it. A backend that refuses it counts only if no later one has it. */
export class LayeredSecrets implements SecretSource {
  readonly #sources: readonly SecretSource[];

  constructor(sources: readonly SecretSource[]) {
    this.#sources = sources;
  }

  async find(namespace: string, name: string): Promise<Secret | undefined> {
    // Backends put the name into paths.
    if (!namePattern.test(name)) return undefined;
    let refusal: SecretError | null = null;
    for (const source of this.#sources) {
      try {
        const secret = await source.find(namespace, name);
        if (secret !== undefined) return secret;
      } catch (error) {
        // A later backend must not replace one that is only unavailable: it may have another value.
        if (!(error instanceof SecretError) || error.retryable) throw error;
        refusal ??= error;
      }
    }
    if (refusal !== null) throw refusal;
    return undefined;
  }
}
