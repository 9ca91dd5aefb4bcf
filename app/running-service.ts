import type { Configuration } from './configuration/configuration.ts';
import type { AdminCredentials } from './starting/first-start.ts';
import type { Stores } from './stores.ts';

/** The service in this process. */
export interface RunningService {
  /** `http://host:port`, or `https://…` with a certificate. */
  readonly address: string;
  /** Random id of this start, shown by `/health/live`. */
  readonly instance: string;
  /** The admin that this start has created on an empty store; null if there was one. Resolves once that is known. */
  readonly firstAdmin: Promise<AdminCredentials | null>;
  readonly stores: Stores;
  /**
   * Reloads the certificate and the token keys. Open connections continue.
   * @throws ConfigurationError when a file cannot be used; then nothing changes
   */
  reload(configuration: Configuration): void;
  /** Takes no more runs, finishes running ones for up to 25 s, hands back the rest, and closes everything. */
  stop(): Promise<void>;
}
