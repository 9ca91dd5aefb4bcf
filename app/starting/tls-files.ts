import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import type { Configuration } from '../configuration/configuration.ts';
import { ConfigurationError, quoted } from '../configuration/setting-readers.ts';

/** A certificate with its chain, and its private key, in PEM. */
export interface TlsFiles {
  readonly cert: string;
  readonly key: string;
}

/**
 * Reads the certificate and key for HTTPS. Returns null if none are set, for plain HTTP.
 * @throws ConfigurationError if a file cannot be read or is not PEM, or if the two do not match
 */
export function readTlsFiles({
  tlsCertFile,
  tlsKeyFile,
}: Pick<Configuration, 'tlsCertFile' | 'tlsKeyFile'>): TlsFiles | null {
  if (tlsCertFile === undefined || tlsKeyFile === undefined) return null;
  const files = {
    cert: contentOf('SVC_TLS_CERT_FILE', tlsCertFile),
    key: contentOf('SVC_TLS_KEY_FILE', tlsKeyFile),
  };
  try {
    createSecureContext(files);
  } catch (error) {
    const why = error instanceof Error ? error.message.split('\n', 1)[0] : String(error);
    const fault = `and SVC_TLS_KEY_FILE cannot be used: ${why}; they must be a PEM certificate and its private key`;
    throw new ConfigurationError('SVC_TLS_CERT_FILE', fault);
  }
  return files;
}

function contentOf(variable: string, path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const { code = 'unknown error' } = error as NodeJS.ErrnoException;
    throw new ConfigurationError(variable, `names ${quoted(path)}, which cannot be read (${code})`);
  }
}
